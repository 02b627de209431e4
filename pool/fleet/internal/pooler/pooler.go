// Package pooler detects connection poolers between a client and PostgreSQL that share sessions.
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

// ErrShared means that a connection has no session of its own.
var ErrShared = errors.New("there is a pooler such as PgBouncer that keeps no session, and ralph needs one for each connection")

// Check connects, and fails with ErrShared if a pooler spreads one connection's statements over several server processes:
// then prepared statements, settings and LISTEN are lost. A second connection with an open transaction occupies the first
// server process meanwhile.
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
	if err != nil || first == one.Conn().PgConn().PID() { // no pooler
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
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "08P01" { // the pooler gives each statement another connection
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

// backend returns the PID of the server process that answers. It uses no prepared statement.
func backend(ctx context.Context, c *pgx.Conn) (pid uint32, err error) {
	results, err := c.PgConn().Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(results[0].Rows[0][0]), 10, 32)
	return uint32(n), err
}
