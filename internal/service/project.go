package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// State is the state of a project.
type State string

// The states of a project.
const (
	Starting State = "starting" // being opened for the first time
	Broken   State = "broken"   // could not be opened
	Paused   State = "paused"   // starts no runs; current runs continue
	Working  State = "working"  // a sweep is active
	Waiting  State = "waiting"  // for the next sweep
	Draining State = "draining" // starts no more runs
)

// Status is a snapshot of a project.
type Status struct {
	Name, Repo string
	State      State
	Problem    string // one line about the configuration, the current sweep or the last one; empty: no problem
	Works      bool   // the backlog can be worked: the only problem, if there is one, is that the latest configuration was refused
	Parallel   int
	Shared     int  // maximum number of concurrent issues of all projects; 0: unlimited
	Starved    bool // a sweep is active, but other projects have all of the shared slots
	Poll       time.Duration
	Running    []pool.Running   // runs of this process
	Elsewhere  []journal.Record // recent runs of other processes
	Swept      time.Time        // end of the last sweep; zero: none yet
	Next       time.Time        // start of the next sweep; zero: one is active
}

// All returns the runs of this and of other processes.
func (s Status) All() []pool.Running {
	out := slices.Clone(s.Running)
	for _, r := range s.Elsewhere {
		out = append(out, pool.Running{Key: r.Key, Run: r.ID, Title: r.Title, Started: r.Started})
	}
	return out
}

// project is one project of a service.
type project struct {
	s      *Service
	name   string
	wakeup chan struct{} // signals a new look at the configuration and the backlog

	mu            sync.Mutex
	load          func(context.Context) (Setup, error) // guarded by mu
	setup         Setup                                // guarded by mu; the last valid one
	parts         *Parts                               // guarded by mu; nil: not open
	nextParts     *Parts                               // guarded by mu; replaces parts when the sweep has ended
	sweeping      bool                                 // guarded by mu
	removed       bool                                 // guarded by mu; removed from the configuration
	ended         bool                                 // guarded by mu; the pool has been drained
	paused        bool                                 // guarded by mu
	tried         bool                                 // guarded by mu
	slots         int                                  // guarded by mu; see share
	starved       bool                                 // guarded by mu; the last balance gave no slot
	waited        int                                  // guarded by mu; see demand
	configProblem string                               // guarded by mu; problem of the configuration
	problem       string                               // guarded by mu; problem of the last sweep
	failures      int                                  // guarded by mu; consecutive failed sweeps
	swept         time.Time                            // guarded by mu
	next          time.Time                            // guarded by mu
	cancelWork    context.CancelCauseFunc              // guarded by mu; ends Parts.Work; nil: not running

	remoteRuns        []journal.Record // guarded by mu; see Parts.Elsewhere
	readingRemoteRuns atomic.Bool      // remoteRuns is being updated

	boardMu       sync.Mutex  // held while the backlog is read; see Board
	board         Board       // guarded by boardMu
	boardTriedAt  time.Time   // guarded by boardMu; time of the last attempt
	answers       answers     // guarded by boardMu
	boardOutdated atomic.Bool // board is outdated

	queue        atomic.Pointer[Queue] // from the last board
	queueReading atomic.Bool           // Queue is reading the backlog
}

// run sweeps until ctx ends, the service drains, or the project is removed.
func (p *project) run(ctx context.Context) {
	for {
		for p.continues(ctx) {
			if p.isEnded() { // it was removed, and added again
				p.close()
			}
			p.configure(ctx)
			p.sleep(ctx, p.sweepOnce(ctx))
		}
		p.close()
		if p.s.Draining() || ctx.Err() != nil || p.s.remove(p) {
			return
		}
	}
}

func (p *project) continues(ctx context.Context) bool {
	return ctx.Err() == nil && !p.s.Draining() && !p.isRemoved()
}

func (p *project) isRemoved() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removed
}

func (p *project) isEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *project) wasTried() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tried
}

// isDatabaseLost reports whether the project's shared database is unreachable.
func (p *project) isDatabaseLost() bool {
	parts := p.opened()
	return parts != nil && parts.Held != nil && errors.Is(parts.Held(), journal.ErrUnavailable)
}

func (p *project) opened() *Parts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parts
}

// setLoad makes the project use load to read its configuration.
func (p *project) setLoad(load func(context.Context) (Setup, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load, p.removed = load, false
}

func (p *project) remove() {
	p.mu.Lock()
	p.removed = true
	p.mu.Unlock()
	p.drain()
}

// wake ends the wait for the next sweep, or makes the current sweep look at the backlog.
func (p *project) wake() {
	if parts := p.opened(); parts != nil {
		parts.Pool.Wake()
		if parts.Wake != nil {
			parts.Wake()
		}
	}
	select {
	case p.wakeup <- struct{}{}:
	default:
	}
}

func (p *project) drain() {
	p.mu.Lock()
	parts := p.parts
	p.ended = true
	p.stopWork()
	p.mu.Unlock()
	if parts != nil {
		parts.Pool.Drain()
	}
	p.wake()
}

func (p *project) kill() {
	if parts := p.opened(); parts != nil {
		parts.Pool.Kill()
	}
}

// close closes the project's parts.
func (p *project) close() {
	p.mu.Lock()
	old, later := p.parts, p.nextParts
	p.parts, p.nextParts, p.setup, p.ended = nil, nil, Setup{}, false
	p.mu.Unlock()
	p.release(old)
	p.release(later)
}

func (p *project) release(parts *Parts) {
	if parts == nil {
		return
	}
	if err := parts.Close(); err != nil {
		p.s.c.Log.Warn("project not closed", "project", p.name, "error", err)
	}
}

// sweepOnce runs a sweep if possible and returns the pause until the next turn.
func (p *project) sweepOnce(ctx context.Context) time.Duration {
	p.mu.Lock()
	parts := p.parts
	if parts == nil || p.paused || p.ended {
		defer p.mu.Unlock()
		return pause(p.setup.Poll, 0, rand.Float64())
	}
	p.sweeping, p.slots, p.next = true, 0, time.Time{}
	parts.Pool.SetParallel(0)
	parts.Pool.SetRetryDelay(cmp.Or(p.setup.Poll, minute))
	until, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	p.cancelWork = enough
	p.mu.Unlock()
	type result struct {
		summary pool.Summary
		err     error
	}
	done := make(chan result, 1)
	go func() {
		if parts.Work != nil {
			done <- result{err: parts.Work(until)}
			return
		}
		summary, err := parts.Pool.Sweep(ctx)
		done <- result{summary, err}
	}()
	p.s.balance()
	check := time.NewTicker(minute)
	defer check.Stop()
	for woken := false; ; {
		select {
		case r := <-done:
			wait := p.finishSweep(r.summary, r.err)
			p.s.balance()
			if woken && parts.Pool.MissedWake() {
				return 0
			}
			return wait
		case <-p.wakeup:
			woken = true
			p.reconfigure(ctx)
		case <-check.C:
			p.reconfigure(ctx)
			if held := parts.holdReason(); held != "" { // it lasts until a run ends, which may take hours
				parts.reportProblem(held)
			}
		}
	}
}

const minute = time.Minute

func (p *Parts) reportProblem(problem string) {
	if p != nil && p.Problem != nil {
		p.Problem(problem)
	}
}

func (p *Parts) reportRefused(line string) {
	if p != nil && p.Refused != nil {
		p.Refused(line)
	}
}

// reconfigure calls configure during a sweep.
func (p *project) reconfigure(ctx context.Context) {
	if p.continues(ctx) {
		p.configure(ctx)
		p.s.balance()
	}
}

// finishSweep records the end of a sweep and switches to later parts, if there are any.
func (p *project) finishSweep(summary pool.Summary, err error) (wait time.Duration) {
	parts, problem := p.opened(), ""
	switch {
	case err != nil:
		problem = parts.problem(err)
	case summary.Unavailable != nil:
		problem = parts.problem(summary.Unavailable)
	case len(summary.Broken) > 0:
		b := summary.Broken[0]
		problem = OneLine(fmt.Errorf("%s: %s", b.Issue.Key, b.Skip.Detail))
	}
	p.mu.Lock()
	known := problem == p.problem
	p.sweeping, p.swept, p.problem, p.cancelWork = false, time.Now(), problem, nil
	if p.failures++; problem == "" {
		p.failures = 0
	}
	wait = pause(p.setup.Poll, p.failures, rand.Float64())
	next := p.nextParts
	if next != nil {
		p.parts, p.nextParts, wait = next, nil, 0
	}
	p.mu.Unlock()
	if problem != "" && !known {
		p.s.c.Log.Warn("backlog not worked", "project", p.name, "error", problem)
	}
	parts.reportProblem(problem)
	if next != nil {
		p.release(parts)
	}
	return wait
}

// pauseMax limits the pause between sweeps of a project that keeps failing.
const pauseMax = 15 * time.Minute

// pause returns the time until the next sweep: about poll, with jitter so that projects do not sweep in step, doubled for
// each failure after the first. r is a random number from 0 to 1.
func pause(poll time.Duration, failures int, r float64) time.Duration {
	if poll <= 0 {
		poll = minute
	}
	wait := poll
	for range failures - 1 {
		if wait *= 2; wait >= pauseMax {
			wait = max(pauseMax, poll)
			break
		}
	}
	return time.Duration(float64(wait) * (0.8 + 0.4*r))
}

func (p *project) sleep(ctx context.Context, wait time.Duration) {
	if !p.continues(ctx) {
		return
	}
	p.mu.Lock()
	p.next = time.Now().Add(wait)
	p.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-p.wakeup:
	case <-ctx.Done():
	}
}

func (p *project) status() Status {
	draining, shared := p.s.Draining(), p.s.sharedSlots()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Name: p.name, Repo: p.setup.Repo, Parallel: p.setup.Parallel, Shared: shared, Poll: p.setup.Poll, Swept: p.swept, Next: p.next,
	}
	if p.parts != nil {
		s.Running, s.Elsewhere = p.parts.Pool.Running(), p.remoteRuns
	}
	if p.sweeping && p.parts != nil {
		s.Problem = p.parts.holdReason()
	}
	if !p.sweeping || len(s.Running) == 0 { // otherwise the problem of the last sweep is solved
		s.Problem = cmp.Or(s.Problem, p.problem)
	}
	if p.parts == nil {
		s.Problem = p.configProblem
	}
	if s.Works = s.Problem == ""; s.Works && p.configProblem != "" {
		s.Problem = refused + ": " + p.configProblem
	}
	switch {
	case draining || p.removed || p.ended:
		s.State = Draining
	case p.parts == nil && p.configProblem != "":
		s.State = Broken
	case p.parts == nil:
		s.State = Starting
	case p.paused:
		s.State = Paused
	case p.sweeping:
		s.State, s.Starved = Working, p.starved && len(s.Running) == 0
	default:
		s.State = Waiting
	}
	return s
}
