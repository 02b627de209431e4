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

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Summary is the result of a sweep.
type Summary struct {
	// Runs are in the order in which they ended. They include runs of earlier sweeps that this sweep has ended, unless their
	// issues have been worked again since, and runs whose last stages are left to a later sweep: their Ended is zero.
	Runs     []journal.Record
	Skipped  []backlog.Skipped // open issues that were not worked, and why
	Problems []tracker.Problem // parts of the backlog that could not be read, as of the last listing
	Cycles   []tracker.Cycle   // open issues that wait for each other, as of the last listing
	// Broken has issues that could not be worked, or whose runs could not end, because of a fault of this host, of the repository,
	// or of this issue on the tracker: for example, a report that the tracker refuses. The next sweep tries again.
	Broken []backlog.Skipped
	// Unavailable is the reason why the sweep could work no more issues: agent, sandbox, tracker, remote or disk; nil: none.
	Unavailable error
	ParkedUntil time.Time        // when the first agent is expected to be available again, if none is available; zero: unknown
	Parked      []journal.Parked // agents that were unavailable when the sweep ended
	// Parallel is how many issues could run at once when the sweep ended, fewer than MaxParallel after refusals of a model service.
	Parallel, MaxParallel int
	Interrupted           bool // ctx, Drain or Kill stopped the sweep, whether issues are left or not
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

// Sweep makes one pass over the backlog: it works each issue once, and again when a person asks for that, until none is left or ctx
// ends, and returns when every run has ended. With keys it works only these issues, each once. All sweeps of a pool share the pool's
// limit.
//
// It first recovers the runs that a crash has left on this host. The base stays fixed during the sweep. Once Kill or Drain was
// called or ctx has ended, Sweep lists nothing, looks up no key, and returns without an error but with Summary.Interrupted. A
// sweep that begins after Kill or Drain recovers nothing either.
func (p *Pool) Sweep(ctx context.Context, keys ...string) (Summary, error) {
	if p.lifetime.Err() != nil || p.isDraining() {
		return Summary{Interrupted: true}, nil
	}
	call, done := p.beginCall(ctx, p.drained)
	defer done()
	s := &sweep{pool: p, keys: keys, call: call, wake: make(chan struct{}, 1)}
	s.tried, s.active, s.asked, s.ended = map[string]bool{}, map[string]bool{}, map[string]string{}, map[string]time.Time{}
	s.wantsSlot.Store(true)
	defer p.enlist(s)()
	defer p.disk.Watch(p.wakeSweeps)()
	before, err := p.recover(call, "")
	s.summary.Runs, s.summary.Broken, s.summary.Unavailable = before.Finished, before.Broken, before.Unavailable
	if err == nil && s.summary.Unavailable == nil {
		p.commands.ObeyAll(call.early, keys)
		err = s.loadParked(call.early)
	}
	if err == nil && s.summary.Unavailable == nil {
		err = s.run(call.early)
	}
	if call.early.Err() != nil { // after the end of early every call may fail
		err = nil
	}
	s.summary.Parked = p.runner.Lot().Waiting(p.choices, time.Now())
	s.summary.Parallel, s.summary.MaxParallel = p.runner.Lot().Allowed(p.choices, time.Now())
	s.summary.Interrupted = call.early.Err() != nil
	return s.summary, err
}

// sweep is the state of one pass. The goroutine of Sweep owns it; runs pass their results to that goroutine.
type sweep struct {
	pool      *Pool
	keys      []string
	call      callContexts
	wake      chan struct{} // a run has ended, a slot or disk space is free, or the backlog may have changed
	wantsSlot atomic.Bool   // the sweep waits for a slot, or has not listed the backlog yet

	runs    sync.WaitGroup
	mu      sync.Mutex
	results []func() // guarded by mu: each adds the result of a run; see addResults
	held    error    // guarded by mu: see Pool.PauseReason

	listed  time.Time // when the backlog was last listed
	woken   int64     // the value of Pool.wakes at that time
	stale   bool      // the backlog has to be listed again
	base    worktree.Base
	queue   []task               // the next runs, in order
	waiting []backlog.Skipped    // issues that the last listing left out
	ordered bool                 // some issues wait for other runs
	capped  bool                 // some issues wait for a cap
	tried   map[string]bool      // started in this sweep
	active  map[string]bool      // started in this sweep and not ended
	ended   map[string]time.Time // when the runs of the other tried issues ended
	asked   map[string]string    // ids of the requests of persons that the tried issues had
	unended []tracker.Issue      // issues whose runs met an outage at their end
	running int
	started int           // runs that count towards Limit
	short   error         // the lack of disk space or budget that was reported last
	outage  error         // why tracker or remote cannot be used, while runs continue
	pause   time.Duration // before the next try after an outage; it grows until a run has ended or no issue is left
	retryAt time.Time     // time of that next try
	summary Summary
}

// run starts runs until ctx ends, and lists the backlog when a worker is idle. It returns when no run is in progress and none can
// start.
func (s *sweep) run(ctx context.Context) error {
	refresh := time.NewTicker(s.pool.c.Refresh)
	defer refresh.Stop()
	var failed error
	for ended := ctx.Done(); ; {
		s.addResults()
		s.updateHeld()
		stopped := failed != nil || ctx.Err() != nil
		ending := len(s.unended) > 0 // then the queue has nothing else, and neither limits nor a lack of room hold these runs back
		over := stopped || s.summary.Unavailable != nil || !ending && s.pool.c.Limit > 0 && s.started >= s.pool.c.Limit
		idle, empty := s.running == 0, len(s.queue) == 0
		stale := s.stale || s.listed.IsZero() || s.woken != s.pool.wakes.Load()
		if !over && !ending && (!empty || s.capped) && s.lacksRoom(ctx, idle) {
			over, empty = idle, true
		}
		switch {
		case !over && !empty && s.takeSlot():
			s.startNext()
			continue
		case !over && empty && stale && s.pool.hasSlot():
			failed = s.list(ctx)
			continue
		}
		s.wantsSlot.Store(!over && (!empty || stale))
		if idle && (over || empty && !stale) {
			break // the summary has the reason
		}
		select {
		case <-s.wake:
		case <-refresh.C: // new issues start as soon as a worker is free
			if !stopped {
				s.pool.commands.ObeyAll(ctx, s.keys)
				s.stale = s.stale || s.hasIssuesLeft() && !time.Now().Before(s.retryAt)
			}
		case <-ended:
			ended = nil
		}
	}
	s.runs.Wait() // every run has passed on its result; wait until each has freed its slot
	for _, w := range s.waiting {
		broken := func(b backlog.Skipped) bool { return b.Issue.Key == w.Issue.Key }
		unrecovered := w.Skip.Code == journal.SkipClaimed && slices.ContainsFunc(s.summary.Broken, broken)
		if !s.tried[w.Issue.Key] && !unrecovered { // a broken recovery keeps its claim for the next sweep
			s.summary.Skipped = append(s.summary.Skipped, w)
		}
	}
	if len(s.unended) > 0 {
		s.summary.Unavailable = cmp.Or(s.summary.Unavailable, s.outage)
	}
	return failed
}

// startNext starts the first run of the queue. A failing run never stops another.
func (s *sweep) startNext() {
	next := s.queue[0]
	next.keys, next.base = s.keys, s.base
	s.queue, s.running, s.started = s.queue[1:], s.running+1, s.started+1
	s.tried[next.issue.Key], s.active[next.issue.Key] = true, true
	s.runs.Go(func() {
		defer s.pool.freeSlot()
		add := func() {} // adds the result of the run
		defer func() {   // runs even if runtime.Goexit ends the goroutine
			s.mu.Lock()
			defer s.mu.Unlock()
			s.results = append(s.results, func() {
				s.running--
				delete(s.active, next.issue.Key)
				add()
			})
		}()
		if next.finishOnly {
			r, err := s.pool.recover(s.call, next.issue.Key)
			add = func() { s.addRecovered(next.issue, r, err) }
		} else {
			r := s.pool.work(s.call, next)
			add = func() { s.addResult(r) }
		}
	})
}

// takeSlot takes a slot if one is free, unless a run has ended whose result may forbid the next.
func (s *sweep) takeSlot() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results) == 0 && s.pool.takeSlot()
}

// loadParked loads the agents that earlier runs on this host found unavailable. If no agent is available, the sweep is over. Keys
// that a person has named are tried even then.
func (s *sweep) loadParked(ctx context.Context) error {
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
		s.summary.Parked, s.summary.ParkedUntil, s.summary.Unavailable = waiting, waiting[0].Until, err
	}
	return nil
}

// list lists the backlog and queues the issues that the sweep has not tried yet.
func (s *sweep) list(ctx context.Context) error {
	first := s.listed.IsZero()
	s.stale = false
	s.forgetTried(time.Duration(s.pool.again.Load()))
	q := backlog.Query{Keys: s.keys, InProgress: maps.Clone(s.active), Ended: s.workedOnce()}
	if woken := s.pool.wakes.Load(); !first && woken != s.woken {
		s.pool.commands.ObeyAll(ctx, s.keys)
	}
	s.listed, s.woken = time.Now(), s.pool.wakes.Load()
	s.pool.heard.Store(s.woken)
	plan, err := s.plan(ctx, q, first)
	gone, unknown := errors.AsType[*backlog.UnknownKeyError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the sweep was stopped
	case unknown && !first:
		s.noteGone(gone.Key)
		return nil
	case publish.Unreachable(err):
		s.noteOutage(err)
		return nil
	default:
		return err
	}
	s.pool.tellPeople(ctx, plan)
	s.queue, s.outage = nil, nil
	s.forgetAsked(plan.Asked)
	for _, i := range s.unended { // first: they need no agent, and a new run would meet the same outage at its end
		if !s.active[i.Key] {
			s.queue = append(s.queue, task{issue: i, finishOnly: true})
		}
	}
	for _, t := range plan.Tasks() {
		if len(s.unended) == 0 && !s.tried[t.Issue.Key] {
			s.queue = append(s.queue, task{issue: t.Issue, follow: t.Follow})
		}
	}
	s.waiting, s.summary.Cycles = slices.Concat(plan.Skipped, plan.WaitingForRuns), plan.Cycles
	s.ordered, s.capped = len(plan.WaitingForRuns) > 0 || plan.Waits(journal.SkipOpen), plan.Waits(journal.SkipCap)
	if len(s.queue) > 0 {
		s.summary.Unavailable = cmp.Or(s.summary.Unavailable, s.pool.runner.Spaces().Usable())
	} else {
		s.pause, s.short = 0, nil // no issue needs room
	}
	s.problems(plan.Problems)
	if first {
		found := len(s.queue) + len(plan.WaitingForRuns)
		s.pool.emit(journal.Event{Kind: journal.EventSweep, Idle: found == 0, Text: fmt.Sprintf("%d to work, %d not", found, len(plan.Skipped))})
		s.pool.c.Run.Log.Info("sweep started", "work", len(s.queue), "skipped", len(plan.Skipped), "base", s.base.Name, "commit", s.base.Commit)
	}
	return nil
}

// problems notes what the listing could not read, and emits the problems that the listing before did not have.
func (s *sweep) problems(list []tracker.Problem) {
	for _, pr := range list {
		if !slices.ContainsFunc(s.summary.Problems, func(old tracker.Problem) bool { return old.Error() == pr.Error() }) {
			s.pool.emit(journal.Event{Kind: journal.EventProblem, Text: pr.Error()})
		}
	}
	s.summary.Problems = list
}

// plan makes a plan. The first call of a sweep pins the base and closes the issues that people have merged.
func (s *sweep) plan(ctx context.Context, q backlog.Query, first bool) (plan backlog.Plan, err error) {
	if first {
		s.base, err = s.pool.newBase(ctx)
	}
	q.Base = s.base
	if err == nil {
		plan, err = s.pool.planner.Plan(ctx, q)
	}
	if err == nil && first && s.pool.closeMerged(ctx, s.base, s.keys) {
		plan, err = s.pool.planner.Plan(ctx, q)
	}
	if err == nil && first && len(plan.Work)+len(plan.FollowUp) > 0 {
		err = s.pool.runner.CheckIdentity(ctx, true)
	}
	return plan, err
}

// tellPeople hands requests that have used up their rounds to a person, and corrects reports of issues that another clone has finished.
func (w *Worker) tellPeople(ctx context.Context, plan backlog.Plan) {
	note := func(key string, err error) {
		if err != nil {
			w.emit(journal.Event{Kind: journal.EventProblem, Key: key, Text: key + ": " + err.Error()})
		}
	}
	for _, f := range plan.HandOver {
		runs, err := w.history(ctx, f.Key)
		if err == nil {
			err = w.runner.HandOver(ctx, f.FollowUp, runs, f.Rounds, f.Mark)
		}
		note(f.Key, err)
	}
	for _, s := range plan.Skipped {
		if s.Skip.Code == journal.SkipDone {
			note(s.Issue.Key, w.taker.CorrectDone(ctx, s.Issue, s.Skip, w.runner.Corrected))
		}
	}
}

// lacksRoom reports whether disk space or caps forbid another run. Running ones may free some. If none is running, the sweep is
// over: only a person can make room.
func (s *sweep) lacksRoom(ctx context.Context, idle bool) bool {
	short := s.pool.runner.Full(ctx)
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
		s.reportHeld(short)
	}
	return true
}
