package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/fleet/internal/address"
	"github.com/ralph-pool/ralph/pool/internal/admission"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/postgres"
	"github.com/ralph-pool/ralph/pool/report"
)

// Journal is the journal of a project on this machine. Its local store, which needs no network, has the runs that this
// machine must complete. The database has a copy for all machines, and their usage. Saving does not wait for the database:
// a record is pending until it is written there. Recording usage waits, because usage that cannot be counted must not
// happen.
type Journal struct {
	f      *Fleet
	local  journal.Store
	shared *postgres.Store

	mu      sync.Mutex
	open    map[string]journal.Record  // guarded by mu; by run; last saved state and action
	pending map[string]*postgres.Entry // guarded by mu; by run; nil: to be deleted
	syncing bool                       // guarded by mu; sync runs

	folders folders

	flushing sync.Mutex   // held during flush, so that an older record never replaces a newer one
	saving   sync.RWMutex // read-locked while a record is saved, for the same reason; see reconcile
}

var (
	_ journal.Store    = (*Journal)(nil)
	_ admission.Shared = (*Journal)(nil)
)

// Journal returns the journal of a project.
func (f *Fleet) Journal(project string, local journal.Store) *Journal {
	return &Journal{
		f: f, local: local, shared: &postgres.Store{DB: f.db.pool, Project: project, Machine: f.id, Log: f.c.Log},
		open: map[string]journal.Record{}, pending: map[string]*postgres.Entry{},
	}
}

// Save inserts or replaces the record of a run.
func (j *Journal) Save(ctx context.Context, r journal.Record) error {
	j.saving.RLock()
	defer j.saving.RUnlock()
	if err := j.local.Save(ctx, r); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Ended.IsZero() {
		r.Doing = j.open[r.ID].Doing
		j.open[r.ID] = r
	} else {
		delete(j.open, r.ID)
		j.startCopying(r)
	}
	e, err := postgres.NewEntry(r)
	if err == nil {
		j.addPending(r.ID, e)
	}
	return err
}

// doingMax is the number of bytes of a run's last action that other machines see.
const doingMax = 200

// Observe handles an event of a run of this machine, without blocking. Within a second, other machines see the action.
func (j *Journal) Observe(e journal.Event) {
	text, says := report.Action(e)
	if !says {
		return
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), doingMax)], "")), " ") // one line
	j.mu.Lock()
	defer j.mu.Unlock()
	r, on := j.open[e.Run]
	if !on || r.Doing == text {
		return
	}
	r.Doing = text
	if entry, err := postgres.NewEntry(r); err == nil { // encoding worked before, when the record was saved
		j.open[e.Run] = r
		j.addPending(e.Run, entry)
	}
}

// Forget deletes the record of a run.
func (j *Journal) Forget(ctx context.Context, run string) error {
	j.saving.RLock()
	defer j.saving.RUnlock()
	if err := j.local.Forget(ctx, run); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, run)
	j.addPending(run, nil)
	return nil
}

// addPending makes an entry pending. The caller holds mu.
func (j *Journal) addPending(run string, e *postgres.Entry) {
	j.pending[run] = e
	if !j.syncing {
		j.syncing = true
		j.f.background.Go(j.sync)
	}
}

// syncTime is the delay before pending records are written, because a run saves its record several times a second. It is
// also the pause after an error.
const syncTime = 500 * time.Millisecond

// sync writes pending records until there are none, and tries once more when the process leaves.
func (j *Journal) sync() {
	for {
		select {
		case <-time.After(syncTime):
		case <-j.f.member.Done():
		}
		last := j.f.member.Err() != nil
		_ = j.flush(context.Background())
		j.mu.Lock()
		j.syncing = len(j.pending) > 0 && !last
		again := j.syncing
		j.mu.Unlock()
		if !again {
			return
		}
	}
}

// flushTime is the time limit of a flush.
const flushTime = 3 * time.Second

// flush writes pending records to the database. It returns the first error.
func (j *Journal) flush(ctx context.Context) (first error) {
	j.flushing.Lock()
	defer j.flushing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	j.mu.Lock()
	list := maps.Clone(j.pending)
	j.mu.Unlock()
	for run, e := range list {
		var err error
		if e == nil {
			err = j.shared.Forget(ctx, run)
		} else {
			err = j.shared.Put(ctx, e)
		}
		if err != nil {
			err = j.f.db.hide(err)
			first = cmp.Or(first, err)
			j.f.c.Log.Debug("record not written to the database yet", "run", run, "error", err)
			if address.IsAway(err) {
				return first
			}
			continue
		}
		j.mu.Lock()
		if j.pending[run] == e {
			delete(j.pending, run)
		}
		j.mu.Unlock()
	}
	return first
}

// Find returns the matching records of this machine, oldest first; see History for those of all machines.
func (j *Journal) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	return j.local.Find(ctx, q)
}

// Spend records a run's total usage. It waits until the database answers.
func (j *Journal) Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error {
	if err := j.local.Spend(ctx, pool, run, used, at); err != nil {
		return err
	}
	return j.retryWhileAway(ctx, func(ctx context.Context) error { return j.shared.Spend(ctx, pool, run, used, at) })
}

// Spent returns the usage on all machines since the beginning of two UTC days. It waits until the database answers.
func (j *Journal) Spent(ctx context.Context, pool string, since, later time.Time) (all, lately agents.Usage, err error) {
	err = j.retryWhileAway(ctx, func(ctx context.Context) (err error) {
		if err := j.flush(ctx); err != nil { // pending records contain usage
			return err
		}
		all, lately, err = j.shared.Spent(ctx, pool, since, later)
		return err
	})
	return all, lately, err
}

// retryWhileAway repeats a call while the database does not answer.
func (j *Journal) retryWhileAway(ctx context.Context, do func(context.Context) error) error {
	for {
		call, cancel := context.WithTimeout(ctx, callTime)
		err := do(call)
		cancel()
		if err == nil || ctx.Err() != nil || !address.IsAway(err) || retry.Sleep(ctx, time.Second) != nil {
			return j.f.db.hide(err)
		}
	}
}

// Begin locks the caps for this machine, in a transaction that the database ends if the machine falls silent. The lock
// holds a connection and its user needs another one, so locks may use only half of all connections.
func (j *Journal) Begin(ctx context.Context, pool string) (end func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	select {
	case j.f.db.locks <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := func() { <-j.f.db.locks }
	conn, err := j.f.db.pool.Acquire(ctx)
	if err != nil {
		done()
		return nil, j.f.db.hide(err)
	}
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('ralph caps ' || $1::text || ' ' || $2::text, 0))", j.shared.Project, pool)
	}
	if err != nil {
		_ = conn.Conn().Close(context.WithoutCancel(ctx)) // the connection may hold the lock nevertheless
		conn.Release()
		done()
		return nil, j.f.db.hide(err)
	}
	return func() error {
		defer done()
		defer conn.Release()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		unwritten := j.flush(ctx)
		err := tx.Commit(ctx)
		if err != nil {
			_ = conn.Conn().Close(ctx)
			err = fmt.Errorf("the lock of the caps was lost: %w", err)
		}
		return j.f.db.hide(cmp.Or(unwritten, err))
	}, nil
}

// Others returns the open runs of other live machines. Reservations of dead machines do not count.
func (j *Journal) Others(ctx context.Context, pool string) (list []journal.Record, err error) {
	err = j.retryWhileAway(ctx, func(ctx context.Context) (err error) {
		list, err = j.f.db.running(ctx, j.shared.Project, pool, j.f.id, j.f.c.TTL)
		return err
	})
	return list, err
}

// reconcile reconciles the project's journal with the database, once per server. A server that has crashed, replaced
// another one or restored older data may lack the last records.
func (f *Fleet) reconcile(ctx context.Context, s *served) error {
	if s.Journal == nil {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	server, _, err := f.db.readServer(call, f.db.pool)
	if err != nil || server == s.server {
		return err
	}
	if err := s.Journal.reconcile(ctx); err != nil {
		return err
	}
	s.server = server
	return nil
}

// reconcileTime is how far back a machine compares its records with the database's.
const reconcileTime = 7 * 24 * time.Hour

// reconcile writes records of this machine that the database lacks, or has without their end.
func (j *Journal) reconcile(ctx context.Context) error {
	q := journal.Query{Since: time.Now().Add(-reconcileTime)}
	known, err := j.shared.Find(ctx, q)
	if err != nil {
		return j.f.db.hide(err)
	}
	here, err := j.addMissing(ctx, q, known)
	if err != nil {
		return err
	}
	_ = j.flush(ctx) // otherwise sync does it
	return j.copyMissing(ctx, here)
}

// addMissing makes records pending that known lacks, or has without their end. No record is saved meanwhile, so they are
// the latest. It returns all records of this machine.
func (j *Journal) addMissing(ctx context.Context, q journal.Query, known []journal.Record) (here []journal.Record, err error) {
	j.saving.Lock()
	defer j.saving.Unlock()
	if here, err = j.local.Find(ctx, q); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range here {
		i := slices.IndexFunc(known, func(k journal.Record) bool { return k.ID == r.ID })
		if i < 0 || known[i].Ended.IsZero() {
			e, err := postgres.NewEntry(r)
			if err != nil {
				return nil, err
			}
			j.addPending(r.ID, e)
		}
	}
	return here, nil
}

// History returns a read-only view with the records of all machines.
func (j *Journal) History() journal.Store { return history{j} }

type history struct{ *Journal }

// readShared reads from the database. away means that it does not answer, so that this machine's records have to do. During a
// known outage it waits only briefly, because a page waits for it.
func (h history) readShared(ctx context.Context, read func(context.Context) error) (away bool, err error) {
	limit := time.Second
	if !h.f.outage.isKnown() {
		limit = callTime
		_ = h.flush(ctx)
	}
	call, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = read(call)
	return err != nil && address.IsAway(err) && ctx.Err() == nil, h.f.db.hide(err)
}

// Find returns records of all machines, or only of this one while the database is away: others may have the run then.
func (h history) Find(ctx context.Context, q journal.Query) (list []journal.Record, err error) {
	away, err := h.readShared(ctx, func(ctx context.Context) (err error) { list, err = h.shared.Find(ctx, q); return err })
	if !away {
		return list, err
	}
	list, err = h.local.Find(ctx, q)
	if err == nil && len(list) == 0 && q.Run != "" {
		err = fmt.Errorf("%w, and this machine has no such run", journal.ErrUnavailable)
	}
	return list, err
}

// Totals sums up the runs of all machines, or only of this one while the database is away.
func (h history) Totals(ctx context.Context, pool string, since time.Time) (list []journal.Total, err error) {
	away, err := h.readShared(ctx, func(ctx context.Context) (err error) { list, err = h.shared.Totals(ctx, pool, since); return err })
	if !away {
		return list, err
	}
	return journal.TotalsOf(ctx, h.local, pool, since)
}
