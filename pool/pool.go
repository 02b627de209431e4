package pool

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/pool/claims"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Config is a pool's set-up. Run, with a Tracker and an Agent, is required; the zero value of every other field means
// the default its comment names.
type Config struct {
	// Run configures the runs. If its Emit is set, it gets every event of a run at once, besides Observe; it must not block.
	Run run.Config
	// Claims is where claims are taken and listed; default: Run.Repo.
	Claims Claims

	Require      []string        // labels that an issue must all have; default "no-human"
	Exclude      []string        // labels of which it may have none, besides the state labels
	Parallel     int             // issues worked at the same time; default 4; see SetParallel
	Limit        int             // issues worked in one sweep; 0: no limit
	MaxOpen      int             // open requests, or unmerged branches of finished issues; 0: no limit
	ByLabel      schedule.Limits // issues with a label that are worked at the same time
	AllowOverlap bool            // work issues at the same time even if they are likely to change the same files
	BranchPrefix string          // default: that of Run.Repo, such as "ralph/"
	MinFree      int64           // bytes that must stay free on the disks of the state folder and of git's; default 1 GiB; negative: no limit
	// Refresh is the time between listings of the backlog while a sweep has an idle worker, and between looks for commands;
	// default 15 s.
	Refresh time.Duration

	// Observe gets every event from one goroutine, in the order in which they were sent: journal.Event.Seq may go back between runs. It
	// must not call Sweep, Work or Recover. A slow one delays no run, but these calls return only after it has got all events, or 3 s
	// after Kill or the end of ctx. When too many wait, those that only show progress are dropped or, without any, the oldest;
	// EventDropped counts them. The run's folder has all of its events.
	Observe func(journal.Event)
}

// Claims takes and lists claims.
type Claims = claims.Source

func (c Config) withDefaults() Config {
	if c.Run.Repo != nil {
		c.Claims, c.BranchPrefix = cmp.Or(c.Claims, Claims(c.Run.Repo)), cmp.Or(c.BranchPrefix, c.Run.Repo.BranchName(""))
	}
	if len(c.Require) == 0 {
		c.Require = []string{"no-human"}
	}
	c.Parallel, c.MinFree = cmp.Or(c.Parallel, 4), cmp.Or(c.MinFree, 1<<30)
	c.Refresh = cmp.Or(c.Refresh, 15*time.Second)
	return c
}

func (c Config) validate() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(config.IsSet(c.Run.Tracker), "Run.Tracker is required")
	need(config.IsSet(c.Run.Agent), "Run.Agent is required")
	need(c.Run.Repo == nil || config.IsSet(c.Claims), "Claims is a nil pointer")
	need(c.Parallel > 0, "Parallel must be at least 1")
	need(c.Limit >= 0 && c.MaxOpen >= 0 && c.Refresh > 0, "MaxOpen, Limit and Refresh must not be negative")
	need(git.ValidRef("refs/heads/"+c.BranchPrefix+"1"), "BranchPrefix cannot begin the name of a branch")
	return errors.Join(append(errs, c.ByLabel.Check(), config.CheckLabels(c.Run.Labels, c.Require, c.Exclude))...)
}

// Pool works one backlog of one repository. New makes it: a zero Pool, like a zero Worker, panics.
type Pool struct {
	*Worker
	wakes   atomic.Int64    // calls of Wake
	drained context.Context //nolint:containedctx // ends with Drain
	drain   context.CancelCauseFunc

	mu     sync.Mutex
	sweeps map[*sweep]bool // guarded by mu; those that are on
}

// New checks the whole configuration and makes a pool. It starts nothing.
func New(c Config) (*Pool, error) {
	w, err := NewWorker(c)
	if err != nil {
		return nil, err
	}
	w.runner.Lot().SetMost(w.c.Parallel)
	p := &Pool{Worker: w, sweeps: map[*sweep]bool{}}
	p.drained, p.drain = context.WithCancelCause(context.Background())
	return p, nil
}

// Wake makes every sweep list the backlog again, and every run look at its issue, such as after a webhook.
func (p *Pool) Wake() {
	p.change(func() { p.wakes.Add(1) })
	p.runner.Look()
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

// SetParallel sets how many issues may be worked at the same time, and returns how many are. With 0 or less, sweeps start no run,
// and wait until it is more, their context ends or Drain is called, even with nothing left to work. Work and Merge do not heed it.
func (p *Pool) SetParallel(n int) (busy int) {
	defer p.signal()
	return p.runner.Lot().SetMost(n)
}

// Demand is how many issues could be worked at the same time if SetParallel allowed it: math.MaxInt, or less after a model service
// has refused requests. It is 0 after Drain or Kill, and when every running sweep has listed the backlog and none waits for a slot.
func (p *Pool) Demand() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	wants := len(p.sweeps) == 0
	for s := range p.sweeps {
		wants = wants || s.wants.Load()
	}
	if !wants || p.isDraining() || p.life.Err() != nil {
		return 0
	}
	return p.runner.Lot().Bears(p.choices, time.Now())
}

// Held is why the sweeps that are on start no more runs for now; nil if nothing is in their way.
func (p *Pool) Held() error {
	p.mu.Lock()
	list := slices.Collect(maps.Keys(p.sweeps))
	p.mu.Unlock()
	for _, s := range list {
		s.mu.Lock()
		err := s.held
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Drain makes sweeps and WorkPlanned start no more runs, and sweeps return when theirs have ended. What they wait for before a run
// begins is waited for no longer. It cannot be undone.
func (p *Pool) Drain() { p.change(func() { p.drain(ErrEnded) }) }

// takeSlot takes a slot for a run if one is free.
func (p *Pool) takeSlot() bool {
	return !p.isDraining() && p.runner.Lot().Enter(p.choices, time.Now())
}

// ErrBusy means that every slot is taken; see SetParallel.
var ErrBusy = errors.New("no slot is free")

// ErrEnded means that Kill or Drain was called.
var ErrEnded = errors.New("the pool has ended")

// WorkPlanned works an issue of a Plan, or follows up its request, if it still qualifies. It needs a free slot.
func (p *Pool) WorkPlanned(ctx context.Context, key string, follow *tracker.FollowUp) (Result, error) {
	if p.isDraining() || p.life.Err() != nil {
		return Result{}, ErrEnded
	}
	if !p.takeSlot() {
		return Result{}, ErrBusy
	}
	defer p.freeSlot()
	r, err := p.single(ctx, p.drained, key, task{follow: follow})
	if r.Skip != nil && r.Skip.Code == journal.SkipStopped && p.isDraining() && ctx.Err() == nil {
		err = cmp.Or(err, ErrEnded)
	}
	return r, err
}

func (p *Pool) freeSlot() {
	p.runner.Lot().Leave()
	p.signal()
}

// hasSlot reports whether takeSlot would succeed.
func (p *Pool) hasSlot() bool { return !p.isDraining() && p.runner.Lot().Free(p.choices, time.Now()) }

func (p *Pool) isDraining() bool { return p.drained.Err() != nil }

// enlist makes Wake reach a sweep until leave is called.
func (p *Pool) enlist(s *sweep) (leave func()) {
	p.change(func() { p.sweeps[s] = true })
	return func() { p.change(func() { delete(p.sweeps, s) }) }
}
