package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/admission"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/postgres"
)

// Journal is the journal of a project on this machine. What this machine has to bring to its end stands in its own store,
// which needs no network; the database has a copy for all machines, and what they have spent. A save does not wait for the
// database, which is told beside the run: what it has missed it gets later. Spending does: what cannot be counted is not spent.
type Journal struct {
	f      *Fleet
	local  journal.Store
	shared *postgres.Store

	mu     sync.Mutex
	behind map[string]*postgres.Entry // guarded by mu; by run, what the database lacks; nil: it is to be forgotten
	told   chan struct{}              // guarded by mu; closed when the database has been told of it; nil: nobody tells it

	telling sync.Mutex // held while the database is told, so that a record does not get there after the one that follows it
}

var (
	_ journal.Store    = (*Journal)(nil)
	_ admission.Shared = (*Journal)(nil)
)

// Journal makes the journal of a project.
func (f *Fleet) Journal(project string, local journal.Store) *Journal {
	return &Journal{
		f: f, local: local, shared: &postgres.Store{DB: f.db.pool, Project: project, Machine: f.id}, behind: map[string]*postgres.Entry{},
	}
}

// Save inserts or replaces the record of a run.
func (j *Journal) Save(ctx context.Context, r journal.Record) error {
	if err := j.local.Save(ctx, r); err != nil {
		return err
	}
	e, err := postgres.NewEntry(r)
	if err != nil {
		return err
	}
	j.tell(r.ID, e)
	return nil
}

// Forget deletes the record of a run.
func (j *Journal) Forget(ctx context.Context, run string) error {
	if err := j.local.Forget(ctx, run); err != nil {
		return err
	}
	j.tell(run, nil)
	return nil
}

// tell notes what the database lacks, and has it told soon.
func (j *Journal) tell(run string, e *postgres.Entry) {
	j.miss(run, e)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.told == nil {
		j.told = make(chan struct{})
		j.f.beside.Go(j.keepTelling)
	}
}

// keepTelling tells the database until it lacks nothing. While it is away it is asked again and again, and once more at the end.
func (j *Journal) keepTelling() {
	for {
		last := j.f.isOver()
		told := j.catchUp(context.Background())
		j.mu.Lock()
		if len(j.behind) == 0 || last {
			close(j.told)
			j.told = nil
			j.mu.Unlock()
			return
		}
		j.mu.Unlock()
		if !told {
			select {
			case <-time.After(tellAgain):
			case <-j.f.over:
			}
		}
	}
}

func (j *Journal) miss(run string, e *postgres.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.behind[run] = e
}

// tellAgain is the pause after the database could not be told.
const tellAgain = time.Second

// saveTime bounds what the database may take to be told.
const saveTime = 3 * time.Second

// catchUp tells the database what it lacks; false: something could not be told.
func (j *Journal) catchUp(ctx context.Context) bool {
	j.telling.Lock()
	defer j.telling.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	j.mu.Lock()
	list := maps.Clone(j.behind)
	j.mu.Unlock()
	all := true
	for run, e := range list {
		var err error
		if e == nil {
			err = j.shared.Forget(ctx, run)
		} else {
			err = j.shared.Put(ctx, e)
		}
		if err != nil {
			all = false
			j.f.c.Log.Debug("record not shared yet", "run", run, "error", j.f.db.hide(err))
			if isAway(err) {
				return false
			}
			continue
		}
		j.mu.Lock()
		if j.behind[run] == e {
			delete(j.behind, run)
		}
		j.mu.Unlock()
	}
	return all
}

// Find lists records of this machine that match, oldest first; see History for those of all.
func (j *Journal) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	return j.local.Find(ctx, q)
}

// Spend notes what a run has used until now, once the database answers.
func (j *Journal) Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error {
	if err := j.local.Spend(ctx, pool, run, used, at); err != nil {
		return err
	}
	return j.insist(ctx, func(ctx context.Context) error { return j.shared.Spend(ctx, pool, run, used, at) })
}

// Spent is what the runs of all machines have used since a day began, once the database answers.
func (j *Journal) Spent(ctx context.Context, pool string, since time.Time) (u agents.Usage, err error) {
	err = j.insist(ctx, func(ctx context.Context) (err error) {
		j.catchUp(ctx) // records say what their runs have used
		u, err = j.shared.Spent(ctx, pool, since)
		return err
	})
	return u, err
}

// insist repeats a call while the database does not answer.
func (j *Journal) insist(ctx context.Context, do func(context.Context) error) error {
	for {
		call, cancel := context.WithTimeout(ctx, callTime)
		err := do(call)
		cancel()
		if err == nil || ctx.Err() != nil || !isAway(err) || !pause(ctx, time.Second) {
			return j.f.db.hide(err)
		}
	}
}

// isAway reports an error after which the same call may succeed: the database was not reached, or is starting or ending.
func isAway(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || slices.Contains([]string{"08", "53", "57"}, answer.Code[:min(2, len(answer.Code))])
}

// Begin waits until no other machine looks at the caps. A look holds a connection and needs another, so that looks may hold half
// of all.
func (j *Journal) Begin(ctx context.Context, pool string) (end func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	select {
	case j.f.db.looks <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := func() { <-j.f.db.looks }
	conn, err := j.f.db.pool.Acquire(ctx)
	if err != nil {
		done()
		return nil, j.f.db.hide(err)
	}
	const key = "hashtextextended('ralph caps ' || $1::text || ' ' || $2::text, 0)"
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock("+key+")", j.shared.Project, pool); err != nil {
		_ = conn.Conn().Close(context.WithoutCancel(ctx)) // it may have the lock all the same
		conn.Release()
		done()
		return nil, j.f.db.hide(err)
	}
	return func() error {
		defer done()
		defer conn.Release()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		told := j.catchUp(ctx)
		var held bool
		err := conn.QueryRow(ctx, "SELECT pg_advisory_unlock("+key+")", j.shared.Project, pool).Scan(&held)
		if err != nil {
			_ = conn.Conn().Close(ctx)
		}
		if err == nil && (!held || !told) {
			err = errors.New("the other machines were not told of the run")
		}
		return j.f.db.hide(err)
	}, nil
}

// Others lists the open runs of other machines that live. What a dead one had reserved is free.
func (j *Journal) Others(ctx context.Context, pool string) (list []journal.Record, err error) {
	err = j.insist(ctx, func(ctx context.Context) error {
		rows, err := j.f.db.pool.Query(ctx, "SELECT id FROM ralph_machine WHERE id <> $2 AND "+alive, j.f.c.Life.Seconds(), j.f.id)
		if err != nil {
			return err
		}
		machines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err == nil {
			list, err = j.shared.Elsewhere(ctx, pool, machines)
		}
		return err
	})
	return list, err
}

// shareTime is how old a run may be that the database is told of when a machine starts: it may have ended in an outage.
const shareTime = 7 * 24 * time.Hour

// share tells the database of the runs of this machine that it does not know, or not the end of.
func (j *Journal) share(ctx context.Context) error {
	q := journal.Query{Since: time.Now().Add(-shareTime)}
	here, err := j.local.Find(ctx, q)
	if err != nil {
		return err
	}
	known, err := j.shared.Find(ctx, q)
	if err != nil {
		return j.f.db.hide(err)
	}
	for _, r := range here {
		i := slices.IndexFunc(known, func(k journal.Record) bool { return k.ID == r.ID })
		if i < 0 || known[i].Ended.IsZero() {
			e, err := postgres.NewEntry(r)
			if err != nil {
				return err
			}
			j.miss(r.ID, e)
		}
	}
	j.catchUp(ctx)
	return nil
}

// History is the journal with the records of all machines, for those who only look.
func (j *Journal) History() journal.Store { return history{j} }

type history struct{ *Journal }

// Find lists records of all machines; of this one alone while the database is away.
func (h history) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	h.catchUp(ctx)
	list, err := h.shared.Find(call, q)
	if err != nil && isAway(err) && ctx.Err() == nil {
		return h.local.Find(ctx, q)
	}
	return list, h.f.db.hide(err)
}

// Totals adds up the runs of all machines; of this one alone while the database is away.
func (h history) Totals(ctx context.Context, pool string, since time.Time) ([]journal.Total, error) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	h.catchUp(ctx)
	list, err := h.shared.Totals(call, pool, since)
	if err == nil || !isAway(err) || ctx.Err() != nil {
		return list, h.f.db.hide(err)
	}
	if adds, ok := h.local.(journal.Totals); ok {
		return adds.Totals(ctx, pool, since)
	}
	here, err := h.local.Find(ctx, journal.Query{Pool: pool, Since: since})
	return journal.Sum(here), err
}
