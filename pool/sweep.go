package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Summary is the result of a sweep.
type Summary struct {
	// Runs are in the order in which they ended. They include runs of earlier sweeps that this one has ended, unless their
	// issues have been worked again since.
	Runs     []journal.Record
	Skipped  []backlog.Skipped // open issues that were not worked, and why
	Problems []tracker.Problem // parts of the backlog that could not be read
	Cycles   []tracker.Cycle   // open issues that wait for each other, as of the last listing
	Broken   []backlog.Skipped // issues that could not be worked because of a fault of this host or the repository
	// Unavailable is why the sweep could work no more issues: agent, sandbox, tracker, remote or disk; nil if it could.
	Unavailable error
	ParkedUntil time.Time        // when the first agent is expected to be available again, if none is; zero if unknown
	Parked      []journal.Parked // agents that were unavailable when the sweep ended
	// Parallel is how many issues could run at once when the sweep ended; Most is the limit. Refusals of a model service lower
	// the first.
	Parallel, Most int
	Interrupted    bool // the end of ctx, Drain or Kill stopped the sweep; it says nothing about issues that were left
}

// Count returns the number of runs with one of the outcomes.
func (s Summary) Count(outcomes ...journal.Outcome) int {
	n := 0
	for _, r := range s.Runs {
		if slices.Contains(outcomes, r.Verdict.Outcome) {
			n++
		}
	}
	return n
}

// Sweep is one pass over the backlog: it works each issue once, until none is left or ctx ends, and returns when every run has
// ended. With keys it works only these. All sweeps of a pool share its limit.
//
// It first recovers runs that a crash has left on this host. The base is pinned when it starts. Once Kill or Drain was called or ctx
// has ended, it lists nothing, looks up no key, and returns without an error: Summary.Interrupted says so.
func (p *Pool) Sweep(ctx context.Context, keys ...string) (Summary, error) {
	if p.life.Err() != nil {
		return Summary{Interrupted: true}, nil
	}
	ctx, hard, done := p.call(ctx)
	defer done()
	s := &sweep{pool: p, keys: keys, hard: hard, wake: make(chan struct{}, 1), tried: map[string]bool{}, on: map[string]bool{}}
	s.wants.Store(true)
	defer p.enlist(s)()
	defer p.disk.Watching(hard, func(*disk.ShortError) { p.signal() })()
	before, err := p.recover(ctx, hard, "")
	s.mu.Lock()
	s.summary.Runs, s.summary.Broken, s.summary.Unavailable = before.Finished, before.Broken, before.Unavailable
	s.mu.Unlock()
	if err == nil && s.summary.Unavailable == nil {
		err = s.begin(ctx)
	}
	if err == nil && s.summary.Unavailable == nil {
		err = s.run(ctx)
	}
	if ctx.Err() != nil { // then every call fails
		err = nil
	}
	s.summary.Parked = p.runner.Lot().Waiting(p.choices, time.Now())
	s.summary.Parallel, s.summary.Most = p.runner.Lot().Allowed(p.choices, time.Now())
	s.summary.Interrupted = ctx.Err() != nil || p.isDraining()
	return s.summary, err
}

// sweep is the state of one pass.
type sweep struct {
	pool *Pool
	keys []string
	hard context.Context //nolint:containedctx // lives exactly as long as the call of Sweep
	wake chan struct{}   // a run has ended, a slot or disk space is free, or the backlog may have changed

	listed time.Time // when the backlog was last listed; next's goroutine only
	woken  int64     // what Pool.wakes was then; next's goroutine only
	base   worktree.Base
	wants  atomic.Bool // it waits for a slot, or has not listed the backlog yet

	mu      sync.Mutex
	queue   []task            // guarded by mu, in order
	waiting []backlog.Skipped // guarded by mu: issues that the last listing left out
	tried   map[string]bool   // guarded by mu: started in this sweep
	on      map[string]bool   // guarded by mu: those of tried that have not ended
	held    bool              // guarded by mu: issues wait for other runs
	running int               // guarded by mu
	started int               // guarded by mu: runs that count towards Limit
	short   error             // guarded by mu: the lack of disk space or budget, which has been reported
	away    error             // guarded by mu: why tracker or remote cannot be used, while runs go on
	pause   time.Duration     // guarded by mu: before they are tried again; longer each time, until a run has ended or none is wanted
	again   time.Time         // guarded by mu: when that is
	stale   bool              // guarded by mu: the backlog has to be listed again
	capped  bool              // guarded by mu: issues wait for a cap
	summary Summary           // guarded by mu
}

func (s *sweep) run(ctx context.Context) error {
	var g errgroup.Group
	var err error
	for {
		next, ok, e := s.next(ctx)
		if !ok {
			err = e
			break
		}
		g.Go(func() error { // always nil: a failing issue never stops another
			defer s.pool.freeSlot()
			s.ended(s.pool.work(ctx, s.hard, next, s.keys, s.base))
			return nil
		})
	}
	s.wants.Store(false)
	_ = g.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiting {
		if !s.tried[w.Issue.Key] {
			s.summary.Skipped = append(s.summary.Skipped, w)
		}
	}
	return err
}

// begin obeys commands, and loads which agents earlier runs on this host found unavailable. If none is available the sweep is
// over. Keys named by a person are tried all the same.
func (s *sweep) begin(ctx context.Context) error {
	s.pool.obeyAll(ctx, s.keys)
	w := s.pool.Worker
	var list []journal.Parked
	if len(s.keys) == 0 {
		var err error
		if list, err = w.Parked(ctx); err != nil {
			return err
		}
	}
	w.runner.Lot().Load(list, w.runner.Spaces().Missing())
	waiting := w.runner.Lot().Waiting(w.choices, time.Now())
	if err := report.AllParked(w.choices, waiting); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.summary.Parked, s.summary.ParkedUntil, s.summary.Unavailable = waiting, waiting[0].Until, err
	}
	return nil
}

// next waits until an issue can be started; it returns false when the sweep is over.
func (s *sweep) next(ctx context.Context) (task, bool, error) {
	refresh := time.NewTicker(s.pool.c.Refresh)
	defer refresh.Stop()
	for ctx.Err() == nil && !s.pool.isDraining() {
		s.mu.Lock()
		over := s.summary.Unavailable != nil || s.pool.c.Limit > 0 && s.started >= s.pool.c.Limit
		idle := s.running == 0
		empty, stale := len(s.queue) == 0, s.stale || s.listed.IsZero() || s.woken != s.pool.wakes.Load()
		if !over && (!empty || s.capped) && s.noRoom(ctx, idle) {
			over = idle
			empty = true
		}
		if !over && !empty && s.pool.takeSlot() {
			next := s.queue[0]
			s.tried[next.issue.Key], s.on[next.issue.Key] = true, true
			s.queue, s.running, s.started = s.queue[1:], s.running+1, s.started+1
			s.mu.Unlock()
			return next, true, nil
		}
		s.mu.Unlock()
		switch {
		case over && idle:
			return task{}, false, nil // the summary has the reason
		case !over && empty && stale && s.pool.hasSlot():
			if err := s.list(ctx); err != nil {
				return task{}, false, err
			}
			continue
		case empty && idle && !stale:
			return task{}, false, nil
		}
		s.wants.Store(!over && (!empty || stale))
		select {
		case <-s.wake:
		case <-refresh.C: // new issues start as soon as a worker is free
			s.pool.obeyAll(ctx, s.keys)
			s.mu.Lock()
			s.stale = s.stale || s.left() && !time.Now().Before(s.again)
			s.mu.Unlock()
		case <-ctx.Done():
		}
	}
	return task{}, false, nil
}

// list lists the backlog and queues the issues that were not tried yet.
func (s *sweep) list(ctx context.Context) error {
	s.mu.Lock()
	first := s.listed.IsZero()
	s.stale = false
	q := backlog.Query{Keys: s.keys, On: maps.Clone(s.on), Over: maps.Clone(s.tried)}
	maps.DeleteFunc(q.Over, func(key string, _ bool) bool { return q.On[key] })
	s.mu.Unlock()
	if woken := s.pool.wakes.Load(); !first && woken != s.woken {
		s.pool.obeyAll(ctx, s.keys)
	}
	s.listed, s.woken = time.Now(), s.pool.wakes.Load()
	plan, err := s.plan(ctx, q, first)
	_, unknown := errors.AsType[*backlog.UnknownKeyError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil, unknown && !first:
		return nil // the sweep was stopped, or a named issue left the backlog while it was worked
	case publish.Unreachable(err):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.isAway(err)
		return nil
	default:
		return err
	}
	s.pool.handOver(ctx, plan.HandOver)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.away = nil, nil
	known := maps.Clone(s.tried)
	add := func(t task) {
		if !known[t.issue.Key] {
			known[t.issue.Key], s.queue = true, append(s.queue, t)
		}
	}
	slices.SortFunc(plan.FollowUp, func(a, b backlog.FollowUp) int { return tracker.Before(a.Issue, b.Issue) })
	for _, f := range plan.FollowUp {
		add(task{issue: f.Issue, follow: &f.FollowUp})
	}
	for _, i := range plan.Work {
		add(task{issue: i})
	}
	s.waiting, s.summary.Cycles = slices.Concat(plan.Skipped, plan.After), plan.Cycles
	s.held = len(plan.After) > 0 || slices.ContainsFunc(plan.Skipped, func(k backlog.Skipped) bool { return k.Skip.Code == journal.SkipOpen })
	s.capped = slices.ContainsFunc(plan.Skipped, func(k backlog.Skipped) bool { return k.Skip.Code == journal.SkipCap })
	if len(s.queue) > 0 {
		s.summary.Unavailable = cmp.Or(s.summary.Unavailable, s.pool.runner.Spaces().Usable())
	} else {
		s.pause = 0
		s.short = nil // nothing is in need of room
	}
	if first {
		s.summary.Problems = plan.Problems
		for _, pr := range plan.Problems {
			s.pool.emit(journal.Event{Kind: journal.EventProblem, Text: pr.Error()})
		}
		found := len(s.queue) + len(plan.After)
		s.pool.emit(journal.Event{Kind: journal.EventSweep, Idle: found == 0, Text: fmt.Sprintf("%d to work, %d not", found, len(plan.Skipped))})
		s.pool.c.Run.Log.Info("sweep started", "work", len(s.queue), "skipped", len(plan.Skipped), "base", s.base.Name, "commit", s.base.Commit)
	}
	return nil
}

// isAway notes that tracker or remote cannot be used. That ends a sweep only when nothing is running: runs may take hours, and
// an outage seconds. While they go on it is tried again, with pauses of up to 15 minutes. s.mu is held.
func (s *sweep) isAway(err error) {
	if s.running == 0 {
		s.summary.Unavailable = err
		return
	}
	if s.away == nil {
		s.pool.emit(journal.Event{Kind: journal.EventProblem, Text: "no new run is started for now: " + err.Error()})
	}
	s.away, s.queue, s.pause = err, nil, min(max(2*s.pause, s.pool.c.Refresh), 15*time.Minute)
	s.again = time.Now().Add(s.pause)
}

// plan makes a plan. The first one of a sweep pins the base, and closes what people have merged before.
func (s *sweep) plan(ctx context.Context, q backlog.Query, first bool) (plan backlog.Plan, err error) {
	if first {
		s.base, _, err = s.pool.newBase(s.hard)
	}
	q.Base = s.base
	if err == nil {
		plan, err = s.pool.planner.Plan(ctx, q)
	}
	if err == nil && first && s.pool.closeMerged(ctx, s.base, s.keys) {
		plan, err = s.pool.planner.Plan(ctx, q)
	}
	if err == nil && first && len(plan.Work)+len(plan.FollowUp) > 0 {
		err = s.pool.runner.CheckIdentity(s.hard, true)
	}
	return plan, err
}

// handOver hands requests that have used up their rounds to a person.
func (w *Worker) handOver(ctx context.Context, list []backlog.FollowUp) {
	for _, f := range list {
		runs, err := w.history(ctx, f.Key)
		if err == nil {
			err = w.runner.HandOver(ctx, f.FollowUp, runs, f.Rounds, f.Mark)
		}
		if err != nil {
			w.emit(journal.Event{Kind: journal.EventProblem, Key: f.Key, Text: f.Key + ": " + err.Error()})
		}
	}
}

// left reports whether issues may be left to try. Of named ones none is once all were tried. s.mu is held.
func (s *sweep) left() bool {
	return len(s.keys) == 0 || slices.ContainsFunc(s.keys, func(key string) bool { return !s.tried[key] })
}

// ended adds a result to the summary. The backlog is listed again: issues may have waited for this one.
func (s *sweep) ended(r Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	delete(s.on, r.Issue.Key)
	s.stale = s.stale || s.left() && (r.Closed || r.Skip == nil || s.held || s.away != nil)
	s.summary.Runs = append(s.summary.Runs, r.Finished...)
	outage := r.Skip != nil && publish.Outage(r.Unavailable)
	if r.Skip == nil {
		s.pause = 0
		s.summary.Runs = append(slices.DeleteFunc(s.summary.Runs, func(b journal.Record) bool { return b.Key == r.Record.Key }), r.Record)
	} else {
		s.started--
		s.leaveOut(r, backlog.Skipped{Issue: r.Issue, Skip: *r.Skip}, outage)
	}
	switch {
	case r.Unavailable == nil || s.summary.Unavailable != nil:
	case outage:
		s.isAway(r.Unavailable)
	default:
		s.summary.Unavailable = r.Unavailable
		s.summary.ParkedUntil = r.Record.Verdict.RetryAt
	}
}

// leaveOut adds an issue that was not worked to the summary. One that has met an outage is tried again with the others. s.mu is held.
func (s *sweep) leaveOut(r Result, not backlog.Skipped, outage bool) {
	e := journal.Event{Kind: journal.EventSkipped, Key: r.Issue.Key, Title: r.Issue.Title, Skip: r.Skip}
	switch {
	case outage && s.running > 0 && s.summary.Unavailable == nil:
		delete(s.tried, r.Issue.Key)
		s.waiting = append(s.waiting, not)
		return
	case r.Unavailable != nil && cmp.Or(s.summary.Unavailable, s.away) != nil: // the reason is known
		s.summary.Skipped = append(s.summary.Skipped, not)
		return
	case r.Err != nil:
		e.Kind = journal.EventProblem
		s.summary.Broken = append(s.summary.Broken, not)
	default:
		s.summary.Skipped = append(s.summary.Skipped, not)
	}
	s.pool.emit(e)
}

// noRoom reports that disk space or caps do not allow another run. Running ones may free some. When none is running the sweep is
// over: only a person can make room. s.mu is held.
func (s *sweep) noRoom(ctx context.Context, idle bool) bool {
	short := s.pool.runner.Admission().Full(ctx)
	if full := s.pool.disk.Short(); full != nil {
		short = full
	}
	switch {
	case short == nil:
		s.short = nil
		return false
	case idle:
		s.summary.Unavailable = short
	case s.short == nil:
		s.short = short
		s.pool.emit(journal.Event{Kind: journal.EventProblem, Text: "no new run is started for now: " + short.Error()})
	}
	return true
}
