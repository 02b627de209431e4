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

// Config configures a pool. Run is required, with a Tracker and an Agent. The zero value of every other field means the default
// that its comment names.
type Config struct {
	// Run configures the runs. Its Emit, if set, receives every event of a run at once, in addition to Observe, and must not
	// block.
	Run run.Config
	// Claims takes and lists the claims; default: Run.Repo.
	Claims Claims

	Require      []string        // labels that an issue must all have; default DefaultLabel
	Exclude      []string        // labels that an issue must not have, in addition to the state labels
	Parallel     int             // maximum number of issues worked at the same time; default 4; see SetParallel
	Limit        int             // maximum number of issues worked in one sweep; 0: no limit
	MaxOpen      int             // maximum number of open requests, or of unmerged branches of finished issues; 0: no limit
	ByLabel      schedule.Limits // maximum numbers of issues with a label that are worked at the same time
	AllowOverlap bool            // work issues at the same time even if they are likely to change the same files
	BranchPrefix string          // prefix of branches; default: the prefix of Run.Repo, such as "ralph/"
	MinFree      int64           // bytes that must stay free on the disks of the state folder and the git directory; default 1 GiB; negative: no limit
	// Refresh is the interval at which a sweep with an idle worker lists the backlog, and at which it looks for commands; default
	// 15 s.
	Refresh time.Duration

	// Observe receives every event, from one goroutine, in the order of sending: journal.Event.Seq may decrease between runs. It
	// must not call Sweep, Work or Recover. A slow Observe delays no run, but these calls return only when it has received all
	// events, or 3 s after Kill or the end of ctx. If too many events wait, progress events are dropped first, then the oldest;
	// EventDropped counts them. The folder of a run has its events; see journal.EventsFile.
	Observe func(journal.Event)
}

// DefaultLabel is the pick-up label of a Config without Require.
const DefaultLabel = "no-human"

// Claims takes and lists claims.
type Claims = claims.Source

func (c Config) withDefaults() Config {
	if c.Run.Repo != nil {
		c.Claims, c.BranchPrefix = cmp.Or(c.Claims, Claims(c.Run.Repo)), cmp.Or(c.BranchPrefix, c.Run.Repo.BranchName(""))
	}
	if len(c.Require) == 0 {
		c.Require = []string{DefaultLabel}
	}
	c.Parallel, c.MinFree = cmp.Or(c.Parallel, 4), cmp.Or(c.MinFree, 1<<30)
	c.Refresh = cmp.Or(c.Refresh, 15*time.Second)
	return c
}

func (c Config) validate() error {
	errs := []error{c.Run.Missing()}
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(config.IsSet(c.Run.Tracker), "Run.Tracker is required")
	need(config.IsSet(c.Run.Agent), "Run.Agent is required")
	if errors.Join(errs...) == nil {
		errs = append(errs, c.Run.WithDefaults().Validate())
	}
	need(c.Run.Repo == nil || config.IsSet(c.Claims), "Claims is a nil pointer")
	need(c.Parallel > 0, "Parallel must be at least 1")
	need(c.Limit >= 0, "Limit must not be negative")
	need(c.MaxOpen >= 0, "MaxOpen must not be negative")
	need(c.Refresh > 0, "Refresh must not be negative")
	need(git.ValidRef("refs/heads/"+c.BranchPrefix+"1"), "BranchPrefix cannot begin the name of a branch")
	return errors.Join(append(errs, c.ByLabel.Check(), config.CheckLabels(c.Run.Labels, c.Require, c.Exclude))...)
}

// Pool works one backlog of one repository. Make one with New: a zero Pool, like a zero Worker, panics.
type Pool struct {
	*Worker
	wakes   atomic.Int64    // number of calls of Wake
	heard   atomic.Int64    // value of wakes when a sweep last listed the backlog
	again   atomic.Int64    // see SetRetryDelay
	drained context.Context //nolint:containedctx // ends with Drain
	drain   context.CancelCauseFunc

	mu     sync.Mutex
	sweeps map[*sweep]bool // the sweeps in progress; guarded by mu
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

// Wake makes every sweep list the backlog again and every run look at its issue, for example after a webhook.
func (p *Pool) Wake() {
	p.changeAndWake(func() { p.wakes.Add(1) })
	p.runner.CheckIssues()
}

// MissedWake reports whether no sweep has listed the backlog since the last call of Wake. A call during the end of a sweep may have
// come too late for it: then the next sweep should begin at once.
func (p *Pool) MissedWake() bool { return p.heard.Load() != p.wakes.Load() }

// wakeSweeps wakes every sweep, because something has changed.
func (p *Pool) wakeSweeps() { p.changeAndWake(func() {}) }

// changeAndWake calls do under mu and wakes every sweep.
func (p *Pool) changeAndWake(do func()) {
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

// SetParallel sets the maximum number of issues worked at the same time, and returns the present number. With 0 or less, sweeps
// list nothing and start no run; they wait, even if no issue is left, until the limit rises, their context ends, or Drain is
// called. Work and Merge ignore it.
func (p *Pool) SetParallel(n int) (busy int) {
	defer p.wakeSweeps()
	return p.runner.Lot().SetMost(n)
}

// SetRetryDelay makes running sweeps retry an issue this long after its last run ended, if the next sweep would retry it. With 0, the
// default, only the next sweep does. Sweeps of named issues work each once.
func (p *Pool) SetRetryDelay(after time.Duration) { p.again.Store(int64(after)) }

// MaxAtOnce returns how many issues could be worked at the same time if SetParallel allowed it: math.MaxInt, or less after a model
// service has refused requests. It is no number of issues: it only says that there may be some. It returns 0 after Drain or Kill,
// and when every running sweep has listed the backlog and none waits for a slot; never while SetParallel(0) keeps sweeps from
// listing, or no sweep runs.
func (p *Pool) MaxAtOnce() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	wants := len(p.sweeps) == 0
	for s := range p.sweeps {
		wants = wants || s.wantsSlot.Load()
	}
	if !wants || p.isDraining() || p.lifetime.Err() != nil {
		return 0
	}
	return p.runner.Lot().Capacity(p.choices, time.Now())
}

// PauseReason returns the reason why the sweeps in progress start no more runs for now; nil: there is none.
func (p *Pool) PauseReason() error {
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

// Drain makes sweeps and WorkPlanned start no more runs. Sweeps return when their runs have ended. Drain ends all waiting that
// precedes a run. It cannot be undone.
func (p *Pool) Drain() { p.changeAndWake(func() { p.drain(ErrEnded) }) }

// takeSlot takes a slot for a run if one is free.
func (p *Pool) takeSlot() bool {
	return !p.isDraining() && p.runner.Lot().Enter(p.choices, time.Now())
}

// ErrBusy means that no slot is free; see SetParallel.
var ErrBusy = errors.New("no slot is free")

// ErrEnded means that Kill or Drain was called.
var ErrEnded = errors.New("the pool starts nothing new")

// WorkPlanned works an issue of a Plan, or follows up its request, if it still qualifies. It needs a free slot: without one it
// returns ErrBusy, and ErrEnded after Drain or Kill.
func (p *Pool) WorkPlanned(ctx context.Context, key string, follow *tracker.FollowUp) (Result, error) {
	if p.isDraining() || p.lifetime.Err() != nil {
		return Result{}, ErrEnded
	}
	if !p.takeSlot() {
		return Result{}, ErrBusy
	}
	defer p.freeSlot()
	r, err := p.workOne(ctx, p.drained, key, task{follow: follow})
	if r.Skip != nil && r.Skip.Code == journal.SkipStopped && p.isDraining() && ctx.Err() == nil {
		err = cmp.Or(err, ErrEnded)
	}
	return r, err
}

func (p *Pool) freeSlot() {
	p.runner.Lot().Leave()
	p.wakeSweeps()
}

// hasSlot reports whether takeSlot would succeed.
func (p *Pool) hasSlot() bool { return !p.isDraining() && p.runner.Lot().Free(p.choices, time.Now()) }

func (p *Pool) isDraining() bool { return p.drained.Err() != nil }

// enlist makes Wake reach a sweep until the caller calls leave.
func (p *Pool) enlist(s *sweep) (leave func()) {
	p.changeAndWake(func() { p.sweeps[s] = true })
	return func() { p.changeAndWake(func() { delete(p.sweeps, s) }) }
}
