package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Summary is what a sweep did.
type Summary struct {
	// Runs are in the order they ended, those of an earlier sweep that this one has brought to their end included. Such a
	// run is left out when its issue has been worked again since.
	Runs     []Record
	Skipped  []Skip            // open issues that were not worked, and why
	Problems []tracker.Problem // what could not be read
	Broken   []Skip            // issues that could not be worked because something is wrong with this host or the repository
	// Unavailable says why nothing more could be worked: the agent, the sandbox, the tracker, the remote or the disk; nil if
	// nothing was wrong.
	Unavailable error
	ParkedUntil time.Time // when the agent is expected back; zero if it is not away or does not say
	Interrupted bool      // the sweep was stopped
}

// Count returns how many runs had one of the outcomes.
func (s Summary) Count(outcomes ...Outcome) int {
	n := 0
	for _, r := range s.Runs {
		if slices.Contains(outcomes, r.Verdict.Outcome) {
			n++
		}
	}
	return n
}

// Sweep is one pass over the backlog: it works what can be worked, Parallel issues at a time, until nothing selectable
// is left or ctx ends, and returns when every run has ended. With keys it is restricted to them.
//
// It first takes care of what a crashed ralph left on this host.
func (p *Pool) Sweep(ctx context.Context, keys ...string) (Summary, error) {
	hard, release := p.untilKilled(ctx)
	defer release()
	s := &sweep{pool: p, keys: keys, hard: hard, tried: map[string]bool{}, wake: make(chan struct{}, 1)}
	defer s.watchDisk()()
	before, err := p.recoverAll(hard)
	s.summary.Runs, s.summary.Broken, s.summary.Unavailable = before.finished, before.broken, before.away
	if err != nil || s.summary.Unavailable != nil {
		return s.summary, err
	}
	if len(keys) == 0 { // who names a key wants it tried now
		if err := s.parked(ctx); err != nil || s.summary.Unavailable != nil {
			return s.summary, err
		}
	}
	err = s.run(ctx)
	s.summary.Interrupted = ctx.Err() != nil
	p.emit(Event{Kind: EventSwept})
	return s.summary, err
}

// task is an issue to work, and the request to follow up if that is why.
type task struct {
	issue  tracker.Issue
	follow *tracker.FollowUp
}

// sweep is the state of one pass.
type sweep struct {
	pool *Pool
	keys []string
	hard context.Context //nolint:containedctx // lives exactly as long as the call of Sweep

	wake chan struct{} // a run has ended, or there is room on the disk again

	mu      sync.Mutex
	queue   []task          // guarded by mu, in order
	waiting []Skip          // guarded by mu: what the last look at the backlog left out
	tried   map[string]bool // guarded by mu: taken in this sweep
	running int             // guarded by mu
	started int             // guarded by mu: runs that count towards Limit
	held    bool            // guarded by mu: people know that the disk has no room
	summary Summary         // guarded by mu
}

func (s *sweep) run(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(s.pool.cfg.Parallel)
	var err error
	for {
		next, ok, e := s.next(ctx)
		if !ok {
			err = e
			break
		}
		g.Go(func() error { // always nil: a failing issue never stops another
			s.ended(s.pool.work(ctx, s.hard, next, s.keys))
			return nil
		})
	}
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

// parked looks whether an earlier sweep has met an agent that is still away.
func (s *sweep) parked(ctx context.Context) error {
	last, err := s.pool.cfg.Journal.Last(ctx)
	if err != nil {
		return err
	}
	for _, r := range last {
		same := r.Agent == s.pool.cfg.Agent.Name() && r.Model == s.pool.cfg.Options.Model
		until := r.Verdict.RetryAt
		if same && r.Verdict.Outcome == AgentUnavailable && until.After(time.Now()) && until.After(s.summary.ParkedUntil) {
			s.summary.Unavailable = fmt.Errorf("agent %s is away: %s; `ralph work %s` tries it at once", r.Agent, r.Verdict.Reason, r.Key)
			s.summary.ParkedUntil = until
		}
	}
	return nil
}

// next waits until an issue can be started; it returns false when the sweep is over.
func (s *sweep) next(ctx context.Context) (task, bool, error) {
	fresh := false
	for ctx.Err() == nil {
		s.mu.Lock()
		over := s.summary.Unavailable != nil
		full := s.running >= s.pool.cfg.Parallel || s.pool.cfg.Limit > 0 && s.started >= s.pool.cfg.Limit
		idle := s.running == 0
		if !over && !full && len(s.queue) > 0 && s.noRoom(idle) {
			over = idle
		} else if !over && !full && len(s.queue) > 0 {
			next := s.queue[0]
			s.queue = s.queue[1:]
			s.tried[next.issue.Key] = true
			s.running++
			s.started++
			s.mu.Unlock()
			return next, true, nil
		}
		s.mu.Unlock()
		switch {
		case idle && (over || full || fresh):
			return task{}, false, nil // being unavailable is in the summary
		case idle:
			fresh = true
			if err := s.list(ctx); err != nil {
				return task{}, false, err
			}
		default:
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
		}
	}
	return task{}, false, nil
}

// list looks at the whole backlog and queues what was not tried yet.
func (s *sweep) list(ctx context.Context) error {
	plan, err := s.pool.Plan(ctx, s.keys...)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil // the sweep was stopped, which is no error
	case isUnknown(err) && len(s.tried) > 0:
		return nil // a named issue has gone from the backlog while it was worked
	case isAway(err):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.summary.Unavailable = err
		return nil
	default:
		return err
	}
	for _, f := range plan.HandOver {
		if err := s.pool.cfg.Tracker.Change(ctx, f.Key, tracker.Change{AddLabels: []string{s.pool.cfg.Labels.NeedsHuman}}); err != nil {
			s.pool.emit(Event{Kind: EventProblem, Key: f.Key, Text: f.Key + ": " + err.Error()})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := len(s.tried) == 0
	s.queue = nil
	for _, f := range plan.FollowUp {
		s.add(task{f.Issue, &f.FollowUp})
	}
	for _, i := range plan.Work {
		s.add(task{issue: i})
	}
	s.waiting = plan.Skipped
	if len(s.queue) > 0 {
		s.summary.Unavailable = s.pool.loggedIn()
	}
	if first {
		s.summary.Problems = plan.Problems
		for _, pr := range plan.Problems {
			s.pool.emit(Event{Kind: EventProblem, Text: pr.Error()})
		}
		s.pool.emit(Event{Kind: EventSweep, Text: fmt.Sprintf("%d to work, %d not", len(s.queue), len(plan.Skipped))})
	}
	return nil
}

// add queues what was not tried yet: follow-ups first, then in the order of the backlog. mu is held.
func (s *sweep) add(t task) {
	if s.tried[t.issue.Key] || slices.ContainsFunc(s.queue, func(q task) bool { return q.issue.Key == t.issue.Key }) {
		return
	}
	at, _ := slices.BinarySearchFunc(s.queue, t, func(a, b task) int {
		if af, bf := a.follow != nil, b.follow != nil; af != bf {
			if af {
				return -1
			}
			return 1
		}
		return before(a.issue, b.issue)
	})
	s.queue = slices.Insert(s.queue, at, t)
}

func isUnknown(err error) bool {
	var unknown *UnknownKeyError
	return errors.As(err, &unknown)
}

// isAway reports that the tracker or the remote cannot be used now: going on with other issues is of no use.
func isAway(err error) bool {
	var (
		away    *tracker.UnavailableError
		refused *tracker.RefusedError
	)
	if errors.Is(err, tracker.ErrNotFound) { // whatever has hidden it: other issues are there
		return false
	}
	return errors.As(err, &away) || errors.As(err, &refused) || errors.Is(err, worktree.ErrRemote)
}

// ended takes a run's end, and looks at the issues that waited for it.
func (s *sweep) ended(r result) {
	var freed []tracker.Issue
	if r.closed {
		freed = s.freed(r.rec.Key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.summary.Runs = append(s.summary.Runs, r.finished...)
	switch {
	case r.skip != "":
		s.started--
		if r.err != nil {
			s.summary.Broken = append(s.summary.Broken, Skip{r.issue, r.skip})
			s.pool.emit(Event{Kind: EventProblem, Key: r.issue.Key, Title: r.issue.Title, Text: r.issue.Key + ": " + r.skip})
			break
		}
		s.summary.Skipped = append(s.summary.Skipped, Skip{r.issue, r.skip})
		s.pool.emit(Event{Kind: EventSkipped, Key: r.issue.Key, Title: r.issue.Title, Text: r.skip})
	default:
		s.summary.Runs = append(slices.DeleteFunc(s.summary.Runs, func(b Record) bool { return b.Key == r.rec.Key }), r.rec)
	}
	if r.unavailable != nil && s.summary.Unavailable == nil {
		s.summary.Unavailable = r.unavailable
		s.summary.ParkedUntil = r.rec.Verdict.RetryAt
	}
	for _, i := range freed {
		s.add(task{issue: i})
	}
	s.wakeUp()
}

// wakeUp lets next look again.
func (s *sweep) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// freed reads again the issues that were blocked by key, and returns those that can be worked now.
func (s *sweep) freed(key string) []tracker.Issue {
	s.mu.Lock()
	var keys []string
	for _, w := range s.waiting {
		if slices.ContainsFunc(w.Issue.BlockedBy, func(b tracker.Blocker) bool { return b.Key == key }) {
			keys = append(keys, w.Issue.Key)
		}
	}
	s.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	v, err := s.pool.look(s.hard, s.keys)
	if err != nil {
		return nil // the next listing finds them
	}
	var out []tracker.Issue
	for _, k := range keys {
		issue, err := s.pool.cfg.Tracker.Get(s.hard, k)
		if err == nil && v.wanted(k) && v.whyNot(issue) == "" {
			out = append(out, issue)
		}
	}
	return out
}
