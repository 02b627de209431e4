package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/ralph-pool/ralph/pool/fleet/internal/address"
	"github.com/ralph-pool/ralph/pool/fleet/internal/pooler"
	"github.com/ralph-pool/ralph/pool/journal/postgres"
)

// ErrAddress means that the database's address cannot be parsed.
var ErrAddress = errors.New("the database's address cannot be read")

// ErrNotMigrated means that tables are missing or older, ErrNewer that they are newer, ErrIncomplete that some are missing.
var (
	ErrNotMigrated = errors.New("the database is not prepared for this ralph")
	ErrNewer       = errors.New("the database is prepared for a newer ralph")
	ErrIncomplete  = errors.New("the database is prepared, but these tables are missing")
)

// schemaVersion increases with every change of schema.
const schemaVersion = 7

const schema = `
CREATE TABLE IF NOT EXISTS ralph_schema (version integer NOT NULL);
CREATE TABLE IF NOT EXISTS ralph_machine (
	id text PRIMARY KEY, name text NOT NULL, projects jsonb NOT NULL, rows bigint[] NOT NULL, expires_at timestamptz NOT NULL,
	repositories jsonb NOT NULL DEFAULT '{}', roles text[] NOT NULL DEFAULT '{}', pid integer NOT NULL DEFAULT 0, since timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS ralph_lease (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, scope text NOT NULL, project text NOT NULL, key text NOT NULL, holder text NOT NULL,
	expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS ralph_lease_by_scope ON ralph_lease (scope);
CREATE TABLE IF NOT EXISTS ralph_pause (project text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS ralph_wake (project text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS ralph_session (id bytea PRIMARY KEY, expires_at timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS ralph_folder (
	project text NOT NULL, run text NOT NULL, content bytea NOT NULL, made_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (project, run)
);
CREATE INDEX IF NOT EXISTS ralph_folder_by_age ON ralph_folder (made_at);
CREATE TABLE IF NOT EXISTS ralph_account (name text PRIMARY KEY, blocked_until timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS ralph_parked (
	account text NOT NULL, agent text NOT NULL, model text NOT NULL, class text NOT NULL, until timestamptz NOT NULL, PRIMARY KEY (account, agent, model)
);
`

// Time limits for the database.
const (
	callTime    = 15 * time.Second // limit of one call
	connectTime = 10 * time.Second // part of it for a connection, if the address has no connect_timeout
)

// Database is a PostgreSQL database that machines share. It is safe for concurrent use.
type Database struct {
	pool   *pgxpool.Pool
	known  address.Passwords // removed from all errors
	locks  chan struct{}     // semaphore for locks of caps; see Journal.Begin
	server serverSeen
}

// OpenFrom connects to the database at a URL or key/value text, such as "postgres://ralph@host/ralph". Parts that the
// address lacks come from the usual variables and files of PostgreSQL clients. OpenFrom calls read again before each
// connection, because the password may change. Its errors contain no password.
func OpenFrom(ctx context.Context, read func() (string, error)) (*Database, error) {
	where, err := read()
	if err != nil {
		return nil, err
	}
	c, err := pgxpool.ParseConfig(where)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrAddress, address.Wrong(err))
	}
	d := &Database{}
	d.known.Add(c.ConnConfig.Password)
	c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if where, err := read(); err == nil {
			if now, err := pgx.ParseConfig(where); err == nil { // otherwise the address is just being written
				c.Password = now.Password
				d.known.Add(c.Password)
			}
		}
		return nil
	}
	c.MaxConns = max(c.MaxConns, 8)
	c.ConnConfig.ConnectTimeout = min(cmp.Or(c.ConnConfig.ConnectTimeout, connectTime), callTime)
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "ralph"
	}
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// A machine that hangs within a transaction would keep its locks as long as its connection lasts. A count after
		// waiting for a lock must see the state after the wait. The contexts here limit all waits.
		_, err := conn.Exec(ctx, fmt.Sprintf("SET idle_in_transaction_session_timeout = %d; SET lock_timeout = 0; "+
			"SET statement_timeout = 0; SET default_transaction_isolation = 'read committed'", callTime.Milliseconds()))
		return err
	}
	d.locks = make(chan struct{}, c.MaxConns/2)
	if d.pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return nil, d.hide(err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err = d.hide(pooler.Check(ctx, d.pool)); err != nil {
		d.pool.Close()
		return nil, err
	}
	return d, nil
}

// Close closes all connections.
func (d *Database) Close() { d.pool.Close() }

func (d *Database) hide(err error) error { return d.known.Without(err) }

// Migrate creates ralph's and River's tables and updates River's. It returns what it did, as lines for people. Machines may
// be working meanwhile, and several may call it at once: they take turns.
func (d *Database) Migrate(ctx context.Context) (done []string, err error) {
	defer func() { err = d.hide(err) }()
	lent, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	turn := lent.Hijack() // closing the connection releases the lock, also if this process is killed
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		_ = turn.Close(end) // the connection holds nothing else
	}()
	if _, err := turn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended('ralph schema', 0))"); err != nil {
		return nil, err
	}
	m, err := d.migrator()
	if err != nil {
		return nil, err
	}
	found, known, err := d.versions(ctx, m)
	if err == nil {
		err = d.compare(found, known)
	}
	switch {
	case !errors.Is(err, ErrNotMigrated):
		return nil, err
	case found.tables > 0 && found.tables < schemaVersion:
		return nil, fmt.Errorf("ralph's tables have version %d, which cannot be upgraded to %d; name an empty database", found.tables, schemaVersion)
	}
	result, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return nil, fmt.Errorf("create the queue's tables: %w", err)
	}
	for _, v := range result.Versions {
		done = append(done, fmt.Sprintf("queue: version %d, %s", v.Version, v.Name))
	}
	if found.tables == schemaVersion {
		return done, nil
	}
	err = d.tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, schema+postgres.Schema+fmt.Sprintf("DELETE FROM ralph_schema; INSERT INTO ralph_schema VALUES (%d)", schemaVersion))
		return err
	})
	if err == nil {
		done = append(done, fmt.Sprintf("ralph: version %d", schemaVersion))
	}
	return done, err
}

func (d *Database) migrator() (*rivermigrate.Migrator[pgx.Tx], error) {
	return rivermigrate.New(riverpgxv5.New(d.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
}

// Check fails with ErrNotMigrated, ErrNewer or ErrIncomplete unless Migrate has run for these versions of River and ralph.
func (d *Database) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	m, err := d.migrator()
	if err != nil {
		return err
	}
	found, known, err := d.versions(ctx, m)
	if err != nil {
		return d.hide(err)
	}
	return d.compare(found, known)
}

// versions are those of ralph's and River's tables; 0: none. River's line is "main"; other users of it have other lines.
type versions struct{ tables, queue int }

func (d *Database) versions(ctx context.Context, m *rivermigrate.Migrator[pgx.Tx]) (found, known versions, err error) {
	known.tables = schemaVersion
	for _, v := range m.AllVersions() {
		known.queue = max(known.queue, v.Version)
	}
	for table, to := range map[string]*int{"ralph_schema": &found.tables, "river_migration": &found.queue} {
		var there bool
		if err = d.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&there); err == nil && there {
			err = d.pool.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+table+" t WHERE coalesce(to_jsonb(t) ->> 'line', 'main') = 'main'").Scan(to)
		}
		if err != nil {
			return found, known, fmt.Errorf("read the version of its tables: %w", err)
		}
	}
	if found == known {
		err = d.complete(ctx)
	}
	return found, known, err
}

// complete fails if tables are missing although the version is right: Migrate would not make them again.
func (d *Database) complete(ctx context.Context) error {
	tables := []string{"river_job", "river_leader", "river_notification", "river_queue"}
	for _, m := range regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`).FindAllStringSubmatch(schema+postgres.Schema, -1) {
		tables = append(tables, m[1])
	}
	var gone string
	err := d.pool.QueryRow(ctx, "SELECT coalesce(string_agg(t, ', '), '') FROM unnest($1::text[]) t WHERE to_regclass(t) IS NULL", tables).Scan(&gone)
	if err == nil && gone != "" {
		err = fmt.Errorf("%w: %s", ErrIncomplete, gone)
	}
	return err
}

// compare returns nil if this ralph can work with the database.
func (d *Database) compare(found, known versions) error {
	if found == known {
		return nil
	}
	reason := ErrNotMigrated
	if found.tables > known.tables || found.queue > known.queue {
		reason = ErrNewer
	}
	at := d.pool.Config().ConnConfig
	return fmt.Errorf("%w: ralph's tables in %s at %s are of version %d and the queue's of %d (0: none), and this ralph knows %d and %d",
		reason, at.Database, at.Host, found.tables, found.queue, known.tables, known.queue)
}

// Remedy says what a person can do about an error of PostgreSQL or of a pooler; "" if the error itself has to say it.
func Remedy(err error) string {
	if errors.Is(err, pooler.ErrShared) {
		return "set pool_mode = session in the pooler's configuration, or name the server itself in the address"
	}
	return address.Remedy(err)
}

// tx calls do in one transaction.
func (d *Database) tx(ctx context.Context, do func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return d.hide(pgx.BeginFunc(ctx, d.pool, do))
}

// exec executes one statement and returns the number of changed rows.
func (d *Database) exec(ctx context.Context, sql string, args ...any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	tag, err := d.pool.Exec(ctx, sql, args...)
	return int(tag.RowsAffected()), d.hide(err)
}

// query returns the rows of one statement.
func query[T any](ctx context.Context, d *Database, to pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rows, err := d.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, d.hide(err)
	}
	list, err := pgx.CollectRows(rows, to)
	return list, d.hide(err)
}

// batch executes statements in one transaction and sends them together.
func (d *Database) batch(ctx context.Context, queue func(*pgx.Batch)) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var b pgx.Batch
	queue(&b)
	return d.hide(d.pool.SendBatch(ctx, &b).Close())
}

// Sessions stores the sessions of browsers that have logged in to any machine.
type Sessions struct{ d *Database }

// Sessions returns the sessions of all machines that share the database.
func (d *Database) Sessions() Sessions { return Sessions{d} }

// maxSessions is the maximum number of sessions.
const maxSessions = 10_000

// Begin adds a session that expires after life. Above maxSessions, the oldest sessions end.
func (s Sessions) Begin(ctx context.Context, id []byte, life time.Duration) error {
	return s.d.batch(ctx, func(b *pgx.Batch) {
		b.Queue(`DELETE FROM ralph_session WHERE expires_at < now()
			OR id IN (SELECT id FROM ralph_session ORDER BY expires_at DESC OFFSET $1)`, maxSessions-1)
		b.Queue("INSERT INTO ralph_session (id, expires_at) VALUES ($1, now() + make_interval(secs => $2))", id, life.Seconds())
	})
}

// IsActive reports whether a session has begun and not ended.
func (s Sessions) IsActive(ctx context.Context, id []byte) (bool, error) {
	found, err := query(ctx, s.d, pgx.RowTo[bool], "SELECT EXISTS (SELECT FROM ralph_session WHERE id = $1 AND expires_at > now())", id)
	return err == nil && found[0], err
}

// End ends a session on all machines.
func (s Sessions) End(ctx context.Context, id []byte) error {
	_, err := s.d.exec(ctx, "DELETE FROM ralph_session WHERE id = $1", id)
	return err
}
