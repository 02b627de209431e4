package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Config is a pool's set-up. Run, with a Tracker and an Agent, is required; the zero value of every other field means
// the default its comment names.
type Config struct {
	// Run is how runs are done. Its Emit, when set, gets every event of a run as well, at once; it must not block.
	Run run.Config
	// Claims takes and lists claims; default: Run.Repo.
	Claims Claims

	Require      []string        // labels an issue must all carry; default "no-human"
	Exclude      []string        // labels none of which it may carry; the state labels always count
	Parallel     int             // issues worked at the same time; default 4; see SetParallel
	Limit        int             // issues worked in one sweep; 0: no limit
	MaxOpen      int             // requests, or unmerged branches of finished issues, that may be open; 0: no limit
	ByLabel      schedule.Limits // of issues worked at the same time
	Together     bool            // also work issues at the same time that are likely to change the same files
	BranchPrefix string          // default: that of Run.Repo, such as "ralph/"
	MinFree      int64           // bytes that runs must leave free where StateDir is; default 1 GiB; negative: no floor
	// Refresh is the time between looks at the backlog while a sweep has an idle worker, and for commands; default 15 s.
	Refresh time.Duration

	// Observe gets every event in order, from one goroutine; it may not call Sweep, Work or Recover. A slow one delays no run.
	// Those calls return once it has seen all, or 3 s after ctx has ended or Kill. Events that only show progress are dropped
	// when too many wait, and EventDropped says how many. All events of a run are in its folder, too.
	Observe func(journal.Event)
}

// Claims is where claims are taken. Its methods are safe for concurrent use.
type Claims interface {
	// Claim takes the claim of an issue, or fails with a *worktree.TakenError.
	Claim(ctx context.Context, key string, h worktree.Holder, ttl time.Duration) (*worktree.Claim, error)
	// Claims lists the claims that are held or hold a record, by key.
	Claims(ctx context.Context) (map[string]worktree.ClaimState, error)
}

var _ Claims = (*worktree.Repo)(nil)

func (c Config) withDefaults() Config {
	if c.Run.Repo != nil {
		c.Claims, c.BranchPrefix = cmp.Or(c.Claims, Claims(c.Run.Repo)), cmp.Or(c.BranchPrefix, c.Run.Repo.BranchName(""))
	}
	if len(c.Require) == 0 {
		c.Require = []string{"no-human"}
	}
	c.Parallel, c.MinFree = cmp.Or(c.Parallel, 4), cmp.Or(c.MinFree, 1<<30)
	c.Refresh = cmp.Or(c.Refresh, 15*time.Second)
	if c.Observe == nil {
		c.Observe = func(journal.Event) {}
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(c.Run.Tracker != nil && c.Run.Agent != nil, "Run.Tracker and Run.Agent are required")
	need(c.Parallel > 0, "Parallel must be at least 1")
	need(c.Limit >= 0 && c.MaxOpen >= 0 && c.Refresh > 0, "MaxOpen, Limit and Refresh must not be negative")
	need(git.ValidRef("refs/heads/"+c.BranchPrefix+"1"), "BranchPrefix cannot begin the name of a branch")
	need(!slices.ContainsFunc(c.Require, func(l string) bool { return strings.TrimSpace(l) == "" }), "Require has an empty label")
	return errors.Join(errs...)
}

// Pool works one backlog of one repository.
type Pool struct {
	*Worker

	mu       sync.Mutex
	draining bool            // guarded by mu
	wakes    int             // guarded by mu; calls of Wake
	sweeps   map[*sweep]bool // guarded by mu; those that are on
}

// New checks the configuration, all of it, and makes a pool. It starts nothing.
func New(c Config) (*Pool, error) {
	w, err := NewWorker(c)
	if err != nil {
		return nil, fmt.Errorf("pool configuration: %w", err)
	}
	w.runner.Lot().SetMost(w.c.Parallel)
	return &Pool{Worker: w, sweeps: map[*sweep]bool{}}, nil
}

// Wake makes every sweep look at the backlog again, such as after a webhook.
func (p *Pool) Wake() {
	p.change(func() { p.wakes++ })
}

// woken counts the calls of Wake.
func (p *Pool) woken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wakes
}

// signal tells every sweep that something has changed.
func (p *Pool) signal() { p.change(func() {}) }

// change makes a change under mu, and tells every sweep.
func (p *Pool) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	for s := range p.sweeps {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// SetParallel changes how many issues are worked at the same time, and returns how many are. With 0 sweeps start nothing.
func (p *Pool) SetParallel(n int) (busy int) {
	defer p.signal()
	return p.runner.Lot().SetMost(n)
}

// Useful is how many issues could be worked at the same time if SetParallel allowed it; math.MaxInt: any number. It is 0 when
// every sweep that is on has looked at the backlog and none waits for a slot.
func (p *Pool) Useful() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	wants := len(p.sweeps) == 0
	for s := range p.sweeps {
		wants = wants || s.wants.Load()
	}
	if !wants {
		return 0
	}
	return p.runner.Lot().Bears(p.choices, time.Now())
}

// Drain makes every sweep start nothing more and return when its runs have ended. It cannot be undone.
func (p *Pool) Drain() {
	p.change(func() { p.draining = true })
}

// takeSlot reports whether another issue may be started, and counts it.
func (p *Pool) takeSlot() bool {
	return !p.isDraining() && p.runner.Lot().Enter(p.choices, time.Now())
}

// ErrBusy says that every slot is taken; see SetParallel.
var ErrBusy = errors.New("no slot is free")

// WorkPlanned is Work for what a Plan has of an issue: skipped, as by a sweep, when it is not fit any more. It needs a slot.
func (p *Pool) WorkPlanned(ctx context.Context, key string, follow *tracker.FollowUp) (Result, error) {
	if !p.takeSlot() {
		return Result{}, ErrBusy
	}
	defer p.freeSlot()
	return p.single(ctx, key, task{follow: follow}, nil)
}

func (p *Pool) freeSlot() {
	p.runner.Lot().Leave()
	p.signal()
}

// hasSlot reports whether takeSlot would succeed.
func (p *Pool) hasSlot() bool { return !p.isDraining() && p.runner.Lot().Free(p.choices, time.Now()) }

func (p *Pool) isDraining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining
}

// enlist registers a sweep to be woken until the function that it returns is called.
func (p *Pool) enlist(s *sweep) (leave func()) {
	p.change(func() { p.sweeps[s] = true })
	return func() { p.change(func() { delete(p.sweeps, s) }) }
}
