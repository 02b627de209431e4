package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// worker works rows. It never fails a row: the planner decides by the backlog whether the issue is worked again.
type worker struct {
	river.WorkerDefaults[row]
	f *Fleet
}

// Delays until a row is fetched again: soon if another machine may have a free slot, later at limits of all machines. Rows
// that wait longer than 5 seconds depend on River's leader, which is missing for a while after a restart of the database.
const shortSnooze, longSnooze = time.Second, 4 * time.Second

// foreign is the age at which a row ends whose issue no machine seems to have. The pauses between its tries grow with it.
const foreign = 5 * time.Minute

// snooze delays the row by about d. Meanwhile its slot is free, and it uses no attempt.
func snooze(d time.Duration) error {
	return river.JobSnooze(time.Duration(float64(d) * (0.75 + 0.5*rand.Float64())))
}

// Work works the issue of a row.
func (w *worker) Work(ctx context.Context, job *river.Job[row]) error {
	f, s := w.f, w.f.project(job.Args.Project)
	defer f.markWorked(job.ID)()
	if s == nil {
		return snooze(shortSnooze)
	}
	waitCtx, cancel := context.WithTimeout(ctx, shortSnooze)
	free, ok := f.slots.Take(waitCtx)
	cancel()
	if !ok {
		return snooze(shortSnooze)
	}
	defer free()
	if wait := s.restLeft(time.Now()); wait > 0 {
		return snooze(min(wait, longSnooze))
	}
	blocked, parked, err := f.db.blocked(ctx, s.Name, s.Account)
	if err != nil || blocked > 0 {
		return snooze(max(blocked, shortSnooze))
	}
	if len(parked) > 0 {
		s.Pool.Park(parked)
	}
	held, ok, err := f.db.takeLeases(ctx, s.Name, job.Args.Key, f.id, f.c.TTL, s.scopes()...)
	if err != nil || !ok {
		return snooze(longSnooze)
	}
	renewCtx, stopRenewing := context.WithCancelCause(context.WithoutCancel(ctx))
	soft, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		held.renewUntil(renewCtx, func() {
			f.c.Log.Warn("another run has taken the slot of this run; this run is ended", "project", s.Name, "issue", job.Args.Key)
			end(errSlotLost)
		})
	}()
	stopWatching := context.AfterFunc(ctx, func() {
		_, asked := errors.AsType[*rivertype.JobCancelError](context.Cause(ctx))
		if !asked || !s.Pool.Stop(job.Args.Key) {
			end(context.Cause(ctx))
		}
	})
	busy := true // also after a panic of the run
	defer func() {
		stopWatching()
		stopRenewing(nil)
		<-renewed
		if f.finish(ctx, held, job.JobRow, !busy); busy {
			return
		}
		select {
		case s.rowFreed <- struct{}{}:
		default:
		}
	}()
	r, err := s.do(soft, job.Args)
	if busy = errors.Is(err, pool.ErrBusy) || errors.Is(err, pool.ErrEnded); busy { // another machine may have room
		return snooze(shortSnooze)
	}
	f.recordEnd(ctx, s, job.Args.Key, r, err)
	if busy = errors.Is(err, tracker.ErrNotFound) && job.ScheduledAt.Sub(job.CreatedAt) < foreign; busy { // another machine may have it
		return snooze(max(shortSnooze, job.ScheduledAt.Sub(job.CreatedAt)))
	}
	return nil
}

// finish frees the leases of a row, and ends the row if it is over: River would take up to a quarter of a second longer,
// during which the planner counts the row. If the database is away, finish tries again when it is back: nobody can use the
// slot before.
func (f *Fleet) finish(ctx context.Context, held *leases, job *rivertype.JobRow, over bool) {
	err := f.tryFinish(ctx, held, job, over)
	if err == nil {
		return
	}
	if !f.away(ctx) {
		f.c.Log.Warn("slot not freed yet", "project", held.project, "issue", held.key, "error", err)
	}
	f.background.Go(func() {
		for err != nil && f.member.Err() == nil && retry.Sleep(context.Background(), shortSnooze) == nil {
			err = f.tryFinish(ctx, held, job, over)
		}
	})
}

func (f *Fleet) tryFinish(ctx context.Context, held *leases, job *rivertype.JobRow, over bool) error {
	ctx = context.WithoutCancel(ctx)
	if !over {
		return held.free(ctx)
	}
	return f.db.batch(ctx, func(b *pgx.Batch) {
		if len(held.ids) > 0 {
			b.Queue(freeLeases, held.owner()...)
		}
		b.Queue("UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = $1 AND state = 'running' AND attempt = $2", job.ID, job.Attempt)
	})
}

var errSlotLost = errors.New("the slot was lost")

// work works the issue, or follows up its request.
func (s *served) work(ctx context.Context, r row) (pool.Result, error) {
	var follow *tracker.FollowUp
	if r.FollowUp {
		plan, err := s.Pool.Plan(ctx)
		if err != nil {
			return pool.Result{}, err
		}
		for _, f := range plan.FollowUp {
			if f.Key == r.Key {
				follow = &f.FollowUp
			}
		}
		if follow == nil { // nothing is left to do
			return pool.Result{Skip: &journal.Skip{Code: journal.SkipRecovered}}, nil
		}
	}
	return s.Pool.WorkPlanned(ctx, r.Key, follow)
}

// scopes returns the scopes in which a run of the project takes a lease.
func (s *served) scopes() []scope {
	return []scope{{name: "project " + s.Name, limit: s.Limit}, {name: s.Account, limit: s.AccountLimit, fair: true}}
}

// recordEnd records what a run reveals about the account and this machine.
func (f *Fleet) recordEnd(ctx context.Context, s *served, key string, r pool.Result, err error) {
	here := slices.DeleteFunc(r.Record.Tally().Parked, func(p journal.Parked) bool { return p.Host != r.Record.Host })
	if err := f.db.park(ctx, s.Account, f.Now(), here); err != nil {
		f.c.Log.Warn("the other machines do not know which agents are unavailable", "account", s.Account, "error", err)
	}
	until := r.Record.Verdict.RetryAt
	switch {
	case r.Unavailable == nil && err == nil:
		s.noteSuccess(key)
	case r.Unavailable == nil:
		if s.isNews(key, err) { // an issue that only other clones have returns with each look at the backlog
			f.c.Log.Warn("issue not worked", "project", s.Name, "issue", key, "error", err)
		}
		if ctx.Err() == nil && !errors.Is(err, errSlotLost) && !errors.Is(err, tracker.ErrNotFound) { // for example a disk that accepts no writes
			s.noteFailure(time.Now(), err)
		}
	case r.Record.Verdict.Outcome == journal.AgentUnavailable && until.After(time.Now()):
		if err := f.db.block(ctx, s.Account, time.Until(until)); err != nil {
			f.c.Log.Warn("the other machines do not know of the account's limit", "account", s.Account, "error", err)
			s.noteFailure(time.Now(), r.Unavailable)
		}
	default:
		s.noteFailure(time.Now(), r.Unavailable)
		f.c.Log.Warn("this machine takes no issues for now", "project", s.Name, "issue", key, "error", r.Unavailable)
	}
}

// Limits of the time that a machine rests from a project after a failure.
const restMin, restMax = 15 * time.Second, 15 * time.Minute
const maxReasons = 1000 // limits loggedReasons, because some issues never return

func (s *served) restLeft(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restUntil.Sub(now)
}

// trouble returns why this machine could not plan or work the project. It returns nil once the machine can, or has rested
// and polled without an error.
func (s *served) trouble(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.planningProblem != nil {
		return s.planningProblem
	}
	if s.lastFailure == nil || now.After(s.restUntil.Add(restMax)) {
		return nil
	}
	return fmt.Errorf("this machine takes no issues for now: %w", s.lastFailure)
}

// notePlanning records what keeps this machine, the project's planner, from starting runs, or nil. isNews uses the key "".
func (s *served) notePlanning(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.planningProblem = why; why == nil {
		delete(s.loggedReasons, "")
	}
}

func (s *served) noteSuccess(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.lastFailure = 0, nil
	delete(s.loggedReasons, key)
}

// isNews reports whether an issue was not worked for another reason than the last time.
func (s *served) isNews(key string, why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, text := s.loggedReasons[key], why.Error()
	if s.loggedReasons[key] = text; len(s.loggedReasons) > maxReasons {
		clear(s.loggedReasons)
	}
	return known != text
}

// notePoll records a poll without an error. It clears a trouble from before this machine's rest.
func (s *served) notePoll(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.After(s.restUntil) {
		s.lastFailure = nil
	}
}

func (s *served) noteFailure(now time.Time, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastFailure, s.failures = why, min(s.failures+1, 10)
	s.restUntil = now.Add(min(restMin<<(s.failures-1), restMax))
}

// blocked returns how long the account must not be used, because no agent is available or the project is paused (0:
// neither), and the agents that runs on any machine found unavailable.
func (d *Database) blocked(ctx context.Context, project, account string) (wait time.Duration, parked []journal.Parked, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var seconds float64
	err = d.pool.QueryRow(ctx, `SELECT greatest((SELECT max(extract(epoch FROM blocked_until - now())) FROM ralph_account
		WHERE name = $1 AND blocked_until > now()), (SELECT $3::double precision FROM ralph_pause WHERE project = $2), 0)::double precision,
		(SELECT json_agg(p) FROM ralph_parked p WHERE account = $1 AND until > now())`, account, project, longSnooze.Seconds()).Scan(&seconds, &parked)
	return time.Duration(seconds * float64(time.Second)), parked, d.hide(err)
}

// block records that no agent of the account is available for a time.
func (d *Database) block(ctx context.Context, account string, wait time.Duration) error {
	_, err := d.exec(ctx, `INSERT INTO ralph_account (name, blocked_until) VALUES ($1, now() + make_interval(secs => $2))
		ON CONFLICT (name) DO UPDATE SET blocked_until = greatest(ralph_account.blocked_until, excluded.blocked_until)`, account, wait.Seconds())
	return err
}

// park records the agents of the account that are unavailable after now. It skips overloaded and unreachable services, which may affect
// only this machine.
func (d *Database) park(ctx context.Context, account string, now time.Time, list []journal.Parked) error {
	list = slices.DeleteFunc(slices.Clone(list), func(p journal.Parked) bool {
		return p.Class == agents.Overload || p.Class == agents.Unreachable || !p.Until.After(now)
	})
	if len(list) == 0 {
		return nil
	}
	return d.batch(context.WithoutCancel(ctx), func(b *pgx.Batch) {
		for _, p := range list {
			b.Queue(`INSERT INTO ralph_parked AS old (account, agent, model, class, until) VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (account, agent, model) DO UPDATE SET class = excluded.class, until = greatest(old.until, excluded.until)`,
				account, p.Agent, p.Model, p.Class, p.Until)
		}
	})
}
