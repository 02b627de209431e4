// Package sqlite stores ralph's journal in one SQLite file. Several processes may use the same file; a [Store] is safe for
// concurrent use.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Store is a journal in an SQLite file.
type Store struct {
	path string
	db   *sql.DB
	look *sql.DB // reads for people, so that these and runs do not wait for each other
	log  *slog.Logger

	parsed sync.Map // statements of db, by their text
}

var _ journal.Store = (*Store)(nil)

const schema = `
CREATE TABLE IF NOT EXISTS runs (
	run TEXT PRIMARY KEY, pool TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
	started INTEGER NOT NULL, ended INTEGER, record TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS runs_by_key ON runs (pool, key, started);
CREATE INDEX IF NOT EXISTS runs_open ON runs (pool) WHERE ended IS NULL;
CREATE TABLE IF NOT EXISTS spend (
	run TEXT NOT NULL, day INTEGER NOT NULL, pool TEXT NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
	cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, cost_usd REAL NOT NULL, PRIMARY KEY (run, day)
) STRICT;
CREATE INDEX IF NOT EXISTS spend_by_day ON spend (pool, day);
`

// saveRun inserts or replaces a record.
const saveRun = `
INSERT INTO runs (run, pool, kind, key, started, ended, record) VALUES (?,?,?,?,?,?,?)
ON CONFLICT (run) DO UPDATE SET ended = excluded.ended, record = excluded.record
`

// spendMore adds the increase of a run's usage to a day.
const spendMore = `
INSERT INTO spend (run, day, pool, input, output, cache_read, cache_write, cost_usd)
SELECT @run, @day, @pool, max(0, @input - coalesce(sum(input), 0)), max(0, @output - coalesce(sum(output), 0)),
	max(0, @read - coalesce(sum(cache_read), 0)), max(0, @write - coalesce(sum(cache_write), 0)), max(0.0, @usd - coalesce(sum(cost_usd), 0))
FROM spend WHERE run = @run
ON CONFLICT (run, day) DO UPDATE SET input = input + excluded.input, output = output + excluded.output,
	cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write, cost_usd = cost_usd + excluded.cost_usd
`

// spendSums sums up the usage since two days.
const spendSums = `
SELECT coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0), coalesce(sum(cost_usd), 0.0),
	coalesce(sum(input) FILTER (WHERE day >= @later), 0), coalesce(sum(output) FILTER (WHERE day >= @later), 0),
	coalesce(sum(cache_read) FILTER (WHERE day >= @later), 0), coalesce(sum(cache_write) FILTER (WHERE day >= @later), 0),
	coalesce(sum(cost_usd) FILTER (WHERE day >= @later), 0.0)
FROM spend WHERE pool = @pool AND day >= @since
`

// schemaVersion increases with every change of the schema; an older ralph refuses a newer file.
const schemaVersion = 3

// Open opens the journal at path, and makes it if needed. log gets messages that need no action; nil discards them.
func Open(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	return openWith(ctx, path, log, url.Values{
		"_pragma": {"busy_timeout(15000)", "journal_mode(WAL)", "synchronous(FULL)"},
		"_txlock": {"immediate"},
	})
}

func openWith(ctx context.Context, path string, log *slog.Logger, options url.Values) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(path) // in a file URL, the first part of a relative path would become the host
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	db.SetMaxOpenConns(1) // SQLite allows one writer; waiting in this process is cheaper
	options.Add("_pragma", "query_only(1)")
	look, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), db.Close())
	}
	look.SetMaxOpenConns(2) // opened only when needed
	s := &Store{path: path, db: db, look: look, log: log}
	if err := s.migrateTogether(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, advised(path, err)), db.Close(), look.Close())
	}
	return s, nil
}

// migrateTogether calls migrate until no other process is in the way. Processes that make the same journal can lock each other out,
// and SQLite does not wait then.
func (s *Store) migrateTogether(ctx context.Context) error {
	const patience = 2 * time.Second
	for began, pause := time.Now(), 4*time.Millisecond; ; pause *= 2 {
		err := s.migrate(ctx)
		failed, ok := errors.AsType[*sqlite.Error](err)
		if !ok || failed.Code()&0xff != lib.SQLITE_BUSY || time.Since(began) > patience || retry.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

// failed adds to an error the failed operation on the file, and advice. It returns nil for a nil error.
func (s *Store) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if advised := advised(s.path, err); advised != err { //nolint:errorlint // whether it is the same one
		return fmt.Errorf("%s: %s: %w", what, s.path, advised)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// DamagedError means that the journal's file is damaged. The file has only history: if it is moved away, a new one is made.
type DamagedError struct {
	Path string
	err  error
}

func (e *DamagedError) Error() string {
	return e.err.Error() + "; it is damaged: move it away; it only contains history"
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.err }

// fullError is SQLite's error about a full file system. It is also an ENOSPC.
type fullError struct{ error }

func (e *fullError) Unwrap() []error { return []error{e.error, unix.ENOSPC} }

// Check reads the whole file and fails if it is damaged. It may take seconds.
func (s *Store) Check(ctx context.Context) error {
	var found string
	err := s.look.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found)
	if err == nil && found != "ok" {
		return fmt.Errorf("read journal: %s: %w", s.path, &DamagedError{s.path, errors.New(strings.ReplaceAll(found, "\n", "; "))})
	}
	return s.failed("read journal", err)
}

// advised adds advice about the file to an error of SQLite, if its code allows it. Otherwise it returns the error
// unchanged.
func advised(path string, err error) error {
	failed, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch failed.Code() & 0xff { // the upper bits only say where it failed
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return &DamagedError{path, err}
	case lib.SQLITE_FULL:
		return fmt.Errorf("%w%s", &fullError{err}, placeAdvice(path))
	case lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN:
		return fmt.Errorf("%w%s", err, placeAdvice(path))
	}
	return err
}

func placeAdvice(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "; it is a folder: move it away"
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return "; create its folder first: mkdir -p " + filepath.Dir(path)
	}
	return "; check whether its file system is full or read-only: df " + filepath.Dir(path)
}

func (s *Store) migrate(ctx context.Context) error {
	var version int
	if err := s.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch {
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		return fmt.Errorf("it was written by a newer ralph (version %d, this one knows %d); use that ralph, or move the file away",
			version, schemaVersion)
	case version > 0:
		return fmt.Errorf("it was written by an older ralph (version %d, this one needs %d); move the file away", version, schemaVersion)
	}
	return s.create(ctx)
}

// create makes the tables, unless another process has made them meanwhile.
func (s *Store) create(ctx context.Context) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		var version int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil || version == schemaVersion {
			return err
		}
		_, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
		return err
	})
}

// inTx calls write in a transaction, which it commits unless write fails.
func (s *Store) inTx(ctx context.Context, write func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it does nothing after Commit
	if err := write(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the file.
func (s *Store) Close() error { return errors.Join(s.look.Close(), s.db.Close()) }

// Save inserts or replaces the record of a run.
func (s *Store) Save(ctx context.Context, r journal.Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("journal run %s: %w", r.ID, err)
	}
	var ended any
	if !r.Ended.IsZero() {
		ended = r.Ended.UnixNano()
	}
	args := []any{r.ID, r.Pool, r.Kind, r.Key, r.Started.UnixNano(), ended, string(text)}
	save, err := s.prepare(ctx, saveRun)
	switch {
	case err != nil:
	case r.Facts.Metered() == (agents.Usage{}):
		_, err = save.ExecContext(ctx, args...)
	default:
		err = s.inTx(ctx, func(tx *sql.Tx) error {
			if _, err := tx.StmtContext(ctx, save).ExecContext(ctx, args...); err != nil { //nolint:sqlclosecheck // the transaction closes it
				return err
			}
			_, err := tx.ExecContext(ctx, spendMore, spending(r.Pool, r.ID, r.Facts.Metered(), time.Now())...)
			return err
		})
	}
	return s.failed("journal run "+r.ID, err)
}

func spending(pool, run string, u agents.Usage, at time.Time) []any {
	u = journal.Bounded(u)
	return []any{
		sql.Named("run", run), sql.Named("pool", pool), sql.Named("day", journal.Day(at)),
		sql.Named("input", u.Input), sql.Named("output", u.Output), sql.Named("read", u.CacheRead),
		sql.Named("write", u.CacheWrite), sql.Named("usd", u.CostUSD),
	}
}

// Spend records a run's total usage.
func (s *Store) Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error {
	_, err := s.db.ExecContext(ctx, spendMore, spending(pool, run, used, at)...)
	return s.failed("journal run "+run, err)
}

// Spent returns the pool's usage since the beginning of two UTC days.
func (s *Store) Spent(ctx context.Context, pool string, since, later time.Time) (all, lately agents.Usage, err error) {
	row := s.db.QueryRowContext(ctx, spendSums, sql.Named("pool", pool), sql.Named("since", journal.Day(since)), sql.Named("later", journal.Day(later)))
	a, l := &all, &lately
	if err := row.Scan(&a.Input, &a.Output, &a.CacheRead, &a.CacheWrite, &a.CostUSD, &l.Input, &l.Output, &l.CacheRead, &l.CacheWrite, &l.CostUSD); err != nil {
		return agents.Usage{}, agents.Usage{}, s.failed("read journal", err)
	}
	return all, lately, nil
}

// Forget deletes the record of a run.
func (s *Store) Forget(ctx context.Context, run string) error {
	_, err := s.db.ExecContext(ctx, "DELETE FROM runs WHERE run = ?", run)
	return s.failed("journal run "+run, err)
}

// Find returns the matching records, oldest first. It sets damaged records aside, because one run must not stop all others.
func (s *Store) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	where, args := []string{"pool = ?"}, []any{q.Pool}
	match := func(column, value string) {
		if value != "" {
			where, args = append(where, column+" = ?"), append(args, value)
		}
	}
	match("run", q.Run)
	match("key", q.Key)
	match("kind", string(q.Kind))
	if len(q.Keys) > 0 {
		keys, err := json.Marshal(q.Keys)
		if err != nil {
			return nil, s.failed("read journal", err)
		}
		where, args = append(where, "key IN (SELECT value FROM json_each(?))"), append(args, string(keys))
	}
	if !q.Since.IsZero() {
		where, args = append(where, "started >= ?"), append(args, q.Since.UnixNano())
	}
	if q.Open {
		where = append(where, "ended IS NULL")
	}
	if q.Latest {
		where = append(where, `ended IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.pool = r.pool
			AND later.key = r.key AND later.kind = r.kind AND later.ended IS NOT NULL AND (later.started, later.run) > (r.started, r.run))`)
	}
	from, ask := "runs AS r WHERE "+strings.Join(where, " AND "), s.ask
	if q.Limit > 0 { // the latest are found without reading their records
		ask = s.look.QueryContext
		from = "runs WHERE rowid IN (SELECT rowid FROM " + from + " ORDER BY started DESC, rowid DESC LIMIT ? OFFSET ?)"
		args = append(args, q.Limit, q.Skip)
	}
	rows, err := ask(ctx, "SELECT run, record FROM "+from+" ORDER BY started, run", args...)
	if err != nil {
		return nil, s.failed("read journal", err)
	}
	defer rows.Close()
	var out []journal.Record
	broken := map[string]error{}
	for rows.Next() {
		var run, text string
		if err := rows.Scan(&run, &text); err != nil {
			return nil, s.failed("read journal", err)
		}
		var r journal.Record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			broken[run] = err
			continue
		}
		out = append(out, r)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, s.failed("read journal", err)
	}
	for run, err := range broken {
		s.log.Warn("record of a run is damaged, and set aside", "run", run, "error", err)
		if err := s.setAside(ctx, run); err != nil {
			return nil, s.failed("set the damaged record of run "+run+" aside", err)
		}
	}
	return out, nil
}

// setAside moves a record to a table that only people read.
func (s *Store) setAside(ctx context.Context, run string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for _, step := range []string{
			"CREATE TABLE IF NOT EXISTS damaged (run TEXT NOT NULL, record TEXT NOT NULL) STRICT",
			"INSERT INTO damaged SELECT run, record FROM runs WHERE run = @run",
			"DELETE FROM runs WHERE run = @run",
		} {
			if _, err := tx.ExecContext(ctx, step, sql.Named("run", run)); err != nil {
				return err
			}
		}
		return nil
	})
}
