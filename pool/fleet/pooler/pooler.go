// Package pooler tells poolers between a client and PostgreSQL by what they do to a session.
package pooler

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrShared says that a connection has no session of its own.
var ErrShared = errors.New("there is a pooler such as PgBouncer that keeps no session, and ralph needs one for each connection")

// Check connects, and fails with ErrShared when one connection's statements go to several of the server's: prepared statements,
// settings and LISTEN are lost then. A second one holds the first's in a transaction meanwhile.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	err := check(ctx, pool)
	switch at := pool.Config().ConnConfig; {
	case errors.Is(err, ErrShared):
		err = fmt.Errorf("at %s, port %d: %w", at.Host, at.Port, err)
	case err != nil:
		err = fmt.Errorf("the database does not answer: %w", err)
	}
	return err
}

func check(ctx context.Context, pool *pgxpool.Pool) error {
	one, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer one.Release()
	first, err := backend(ctx, one.Conn())
	if err != nil || first == one.Conn().PgConn().PID() { // there is no pooler
		return err
	}
	again, err := backend(ctx, one.Conn())
	if err != nil {
		return err
	}
	two, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer two.Release()
	if _, err := two.Exec(ctx, "BEGIN"); err != nil {
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "08P01" { // each statement has another connection
			return ErrShared
		}
		return err
	}
	defer func() { _, _ = two.Exec(ctx, "ROLLBACK") }()
	last, err := backend(ctx, one.Conn())
	if err == nil && (first != again || first != last) {
		err = ErrShared
	}
	return err
}

// backend is the number of the server's process that answers. Nothing is prepared for the question.
func backend(ctx context.Context, c *pgx.Conn) (pid uint32, err error) {
	results, err := c.PgConn().Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(results[0].Rows[0][0]), 10, 32)
	return uint32(n), err
}
