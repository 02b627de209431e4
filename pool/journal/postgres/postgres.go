// Package postgres stores the journals of several machines in one PostgreSQL database. A [Store] is the journal of one
// project.
package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Schema creates the tables and may be executed repeatedly. The tables refuse usage outside of the range of
// journal.Bounded, because it would enter the sums of all runs or make them overflow.
const Schema = `
CREATE TABLE IF NOT EXISTS ralph_run (
	project text NOT NULL, run text NOT NULL, pool text NOT NULL, kind text NOT NULL, key text NOT NULL, machine text NOT NULL,
	started bigint NOT NULL, ended bigint, record text NOT NULL, PRIMARY KEY (project, run)
);
CREATE INDEX IF NOT EXISTS ralph_run_by_key ON ralph_run (project, pool, key, started);
CREATE INDEX IF NOT EXISTS ralph_run_open ON ralph_run (project, pool) WHERE ended IS NULL;
CREATE TABLE IF NOT EXISTS ralph_spend (
	project text NOT NULL, run text NOT NULL, day bigint NOT NULL, pool text NOT NULL, input bigint NOT NULL, output bigint NOT NULL,
	cache_read bigint NOT NULL, cache_write bigint NOT NULL, cost_usd double precision NOT NULL, PRIMARY KEY (project, run, day),
	CONSTRAINT ralph_spend_is_sane CHECK (day BETWEEN 0 AND 100000 AND input BETWEEN 0 AND 1000000000000 AND output BETWEEN 0 AND 1000000000000
		AND cache_read BETWEEN 0 AND 1000000000000 AND cache_write BETWEEN 0 AND 1000000000000 AND cost_usd BETWEEN 0 AND 1000000)
);
CREATE INDEX IF NOT EXISTS ralph_spend_by_day ON ralph_spend (project, pool, day);
`

// Store is the journal of a project. Its methods are safe for concurrent use.
type Store struct {
	DB      *pgxpool.Pool
	Project string       // the store only sees records of this project
	Machine string       // the machine that saves records
	Log     *slog.Logger // nil: no log

	damaged sync.Map // runs whose damaged record was logged, by run
}

var _ journal.Store = (*Store)(nil)

// spendMore adds the increase of a run's usage to a day. Concurrent statements about the same run wait for each other.
const spendMore = `
INSERT INTO ralph_spend AS s (project, run, day, pool, input, output, cache_read, cache_write, cost_usd)
SELECT $1::text, $2::text, $3::bigint, $4::text, greatest(0, $5::bigint - coalesce(sum(input), 0)), greatest(0, $6::bigint - coalesce(sum(output), 0)),
	greatest(0, $7::bigint - coalesce(sum(cache_read), 0)), greatest(0, $8::bigint - coalesce(sum(cache_write), 0)),
	greatest(0, $9::double precision - coalesce(sum(cost_usd), 0))
FROM ralph_spend WHERE project = $1 AND run = $2
ON CONFLICT (project, run, day) DO UPDATE SET input = s.input + excluded.input, output = s.output + excluded.output,
	cache_read = s.cache_read + excluded.cache_read, cache_write = s.cache_write + excluded.cache_write, cost_usd = s.cost_usd + excluded.cost_usd`

// Entry is a record in its stored form. Later changes of the record do not affect it.
type Entry struct {
	run, pool, kind, key, text string
	started                    int64
	ended                      *int64
	used                       agents.Usage
}

// NewEntry converts a record to an entry.
func NewEntry(r journal.Record) (*Entry, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("journal run %s: %w", r.ID, err)
	}
	e := &Entry{run: r.ID, pool: r.Pool, kind: string(r.Kind), key: r.Key, text: string(text), started: r.Started.UnixNano(), used: r.Facts.Metered()}
	if !r.Ended.IsZero() {
		at := r.Ended.UnixNano()
		e.ended = &at
	}
	return e, nil
}

// Save inserts or replaces the record of a run.
func (s *Store) Save(ctx context.Context, r journal.Record) error {
	e, err := NewEntry(r)
	if err != nil {
		return err
	}
	return s.Put(ctx, e)
}

// Put is Save for an entry.
func (s *Store) Put(ctx context.Context, e *Entry) error {
	return s.write(ctx, e.run, func(b *pgx.Batch) {
		b.Queue(`INSERT INTO ralph_run (project, run, pool, kind, key, machine, started, ended, record) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (project, run) DO UPDATE SET machine = excluded.machine, ended = excluded.ended, record = excluded.record`,
			s.Project, e.run, e.pool, e.kind, e.key, s.Machine, e.started, e.ended, e.text)
		if e.used != (agents.Usage{}) {
			at := time.Now()
			if e.ended != nil { // the run may have ended days ago, and the database may have lost it
				at = time.Unix(0, *e.ended)
			}
			s.spend(b, e.pool, e.run, e.used, at)
		}
	})
}

// write changes the data of a run, in one transaction that is sent as a batch.
func (s *Store) write(ctx context.Context, run string, queue func(*pgx.Batch)) error {
	var b pgx.Batch
	queue(&b)
	if err := s.DB.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("journal run %s: %w", run, err)
	}
	return nil
}

func (s *Store) spend(b *pgx.Batch, pool, run string, u agents.Usage, at time.Time) {
	u = journal.Bounded(u)
	b.Queue("SELECT pg_advisory_xact_lock(hashtextextended('ralph spend ' || $1::text || ' ' || $2::text, 0))", s.Project, run)
	b.Queue(spendMore, s.Project, run, journal.Day(at), pool, u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CostUSD)
}

// Spend records a run's total usage.
func (s *Store) Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error {
	return s.write(ctx, run, func(b *pgx.Batch) { s.spend(b, pool, run, used, at) })
}

// spendSums sums up the usage since two days.
const spendSums = `
SELECT coalesce(sum(input), 0)::bigint, coalesce(sum(output), 0)::bigint, coalesce(sum(cache_read), 0)::bigint, coalesce(sum(cache_write), 0)::bigint,
	coalesce(sum(cost_usd), 0), coalesce(sum(input) FILTER (WHERE day >= $4), 0)::bigint, coalesce(sum(output) FILTER (WHERE day >= $4), 0)::bigint,
	coalesce(sum(cache_read) FILTER (WHERE day >= $4), 0)::bigint, coalesce(sum(cache_write) FILTER (WHERE day >= $4), 0)::bigint,
	coalesce(sum(cost_usd) FILTER (WHERE day >= $4), 0)
FROM ralph_spend WHERE project = $1 AND pool = $2 AND day >= $3`

// Spent returns the pool's usage since the beginning of two UTC days.
func (s *Store) Spent(ctx context.Context, pool string, since, later time.Time) (all, lately agents.Usage, err error) {
	row := s.DB.QueryRow(ctx, spendSums, s.Project, pool, journal.Day(since), journal.Day(later))
	a, l := &all, &lately
	if err := row.Scan(&a.Input, &a.Output, &a.CacheRead, &a.CacheWrite, &a.CostUSD, &l.Input, &l.Output, &l.CacheRead, &l.CacheWrite, &l.CostUSD); err != nil {
		return agents.Usage{}, agents.Usage{}, fmt.Errorf("read journal: %w", err)
	}
	return all, lately, nil
}

// Forget deletes the record of a run.
func (s *Store) Forget(ctx context.Context, run string) error {
	if _, err := s.DB.Exec(ctx, "DELETE FROM ralph_run WHERE project = $1 AND run = $2", s.Project, run); err != nil {
		return fmt.Errorf("journal run %s: %w", run, err)
	}
	return nil
}

// Find returns the matching records, oldest first. It leaves out unreadable records.
func (s *Store) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	where, args := []string{"project = $1", "pool = $2"}, []any{s.Project, q.Pool}
	match := func(condition string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf("%s ($%d)", condition, len(args)))
	}
	for _, m := range []struct{ column, value string }{{"run", q.Run}, {"key", q.Key}, {"kind", string(q.Kind)}} {
		if m.value != "" {
			match(m.column+" =", m.value)
		}
	}
	if len(q.Keys) > 0 {
		match("key = ANY", q.Keys)
	}
	if !q.Since.IsZero() {
		match("started >=", q.Since.UnixNano())
	}
	if q.Open {
		where = append(where, "ended IS NULL")
	}
	if q.Latest {
		where = append(where, `ended IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ralph_run AS later
			WHERE later.project = r.project AND later.pool = r.pool AND later.key = r.key AND later.kind = r.kind
			AND later.ended IS NOT NULL AND (later.started, later.run COLLATE "C") > (r.started, r.run COLLATE "C"))`)
	}
	which := strings.Join(where, " AND ")
	if q.Limit > 0 { // the latest are found without reading their records
		args = append(args, q.Limit, q.Skip)
		which = fmt.Sprintf(`project = $1 AND run IN (SELECT run FROM ralph_run AS r
			WHERE %s ORDER BY started DESC, run COLLATE "C" DESC LIMIT $%d OFFSET $%d)`,
			which, len(args)-1, len(args))
	}
	return s.find(ctx, which, args...)
}

// Elsewhere returns the open records that these machines have saved.
func (s *Store) Elsewhere(ctx context.Context, pool string, machines []string) ([]journal.Record, error) {
	return s.find(ctx, "project = $1 AND pool = $2 AND ended IS NULL AND machine = ANY($3)", s.Project, pool, machines)
}

func (s *Store) find(ctx context.Context, where string, args ...any) ([]journal.Record, error) {
	rows, err := s.DB.Query(ctx, "SELECT run, record FROM ralph_run AS r WHERE "+where+` ORDER BY started, run COLLATE "C"`, args...)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var out []journal.Record
	var run, text string
	_, err = pgx.ForEachRow(rows, []any{&run, &text}, func() error {
		var r journal.Record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			s.leaveOut(run, err)
			return nil
		}
		out = append(out, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return out, nil
}

// leaveOut logs an unreadable record, once. The record stays in the database, because another version may have written it.
func (s *Store) leaveOut(run string, err error) {
	if _, known := s.damaged.LoadOrStore(run, true); !known && s.Log != nil {
		s.Log.Warn("record of a run is damaged and skipped", "project", s.Project, "run", run, "error", err)
	}
}
