package run

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/checks"
	"github.com/ralph-pool/ralph/pool/internal/admission"
	"github.com/ralph-pool/ralph/pool/internal/judge"
	"github.com/ralph-pool/ralph/pool/internal/retest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/run/internal/events"
	"github.com/ralph-pool/ralph/pool/run/internal/hold"
	"github.com/ralph-pool/ralph/pool/run/internal/spending"
	"github.com/ralph-pool/ralph/pool/run/internal/stopping"
	"github.com/ralph-pool/ralph/pool/run/internal/tree"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Runner does runs. Make one with New. It is safe for concurrent use.
type Runner struct {
	c            Config
	host         string
	process      string // start token of this process
	policy       publish.Policy
	opened       atomic.Bool // a sandbox has opened, so a later failure affects only its own run
	events       *events.Source
	checkRequest atomic.Pointer[chan struct{}] // closed by the next CheckIssues

	admission *admission.Desk
	lot       *parking.Lot
	spaces    *workspace.Config
	baselines *workspace.Baselines
	watcher   *checks.Watcher
	retest    *retest.Tester
	trees     *tree.Maker
	judge     *judge.Judge
}

// New checks the configuration and makes a Runner. It starts nothing.
func New(c Config) (*Runner, error) {
	if err := c.Missing(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	process, err := proc.Started(os.Getpid())
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	shared, _ := c.Store.(admission.Shared)
	c.Store = &journal.Unsaved{Store: c.Store}
	c.Network.Account = ledger.NewAccount(c.Caps, c.Store, c.Pool)
	state := c.Repo.StateDir()
	spaces := &workspace.Config{
		Repo: c.Repo, Agents: c.Agents(), Reviewer: agents.Link{Agent: c.Review.Agent, Options: c.Review.Options},
		Sandboxes: c.Sandboxes, EarlierProvider: c.EarlierProvider,
		Env: c.Env, Network: c.Network, Limits: c.Limits, Homes: c.KeptHomes(), Mounts: c.Mounts, Before: c.Before,
		Timers: c.Timers, StopGrace: c.StopGrace, Secrets: c.Secrets, Log: c.Log,
		Disk: &disk.Guard{Place: state, Also: c.Repo.Git().Common(), Floor: c.MinFree, Freeing: c.Repo.Freeing},
	}
	lot := &parking.Lot{Slowed: func(s parking.Slow) {
		s.PID, s.Process = os.Getpid(), process
		if err := s.Write(filepath.Join(state, "slow")); err != nil {
			c.Log.Warn("not shown in status that fewer runs begin", "error", err)
		}
	}}
	spaces.Limited = func(agent string) { lot.Limited(agent, time.Now()) }
	r := &Runner{
		c: c, host: host, process: process, lot: lot, spaces: spaces,
		policy:    publish.Policy{Repo: c.Repo, Protected: c.Protected, Files: c.Files, Copied: c.Copy, Secrets: c.Secrets},
		baselines: workspace.NewBaselines(spaces, filepath.Join(state, "baselines")),
		watcher:   &checks.Watcher{Spaces: spaces}, retest: &retest.Tester{Spaces: spaces}, judge: &judge.Judge{Spaces: spaces},
	}
	r.admission = &admission.Desk{
		Store: c.Store, Shared: shared, Pool: c.Pool, Account: c.Network.Account, Budget: c.Budget.Min(c.PerRun), Estimate: c.LargestEstimate(),
		Dead: r.Dead, Lock: filepath.Join(state, "locks", "admission"),
	}
	r.events = &events.Source{Pool: c.Pool, Secrets: c.Secrets, Emit: c.Emit}
	r.trees = &tree.Maker{Config: &r.c, Spaces: spaces}
	r.checkRequest.Store(new(make(chan struct{})))
	return r, nil
}

// Task is one run to do. Record is required.
type Task struct {
	Record journal.Record
	Resume bool            // continue the run at its stored stage
	Claim  *worktree.Claim // nil: the claim is lost
	Shared bool            // another run owns the claim and uses it afterwards

	Issue       tracker.Issue                     // KindIssue: the frozen snapshot
	Follow      *tracker.FollowUp                 // the request to follow up; nil: work the issue
	Feedback    string                            // from earlier runs, for the first iteration
	Unpublished *journal.Record                   // an earlier run whose commits are not published yet; nil: none
	Unfit       func(tracker.Issue) tracker.Unfit // why the issue no longer qualifies
	Edited      func(tracker.Issue) bool          // whether the issue differs from the snapshot; nil: unknown
	Base        worktree.Base                     // pinned base; zero: that of the configuration
	Failed      error                             // why the run cannot begin; the run ends with this error

	// For prompts and commands.
	Head           bool // work in the user's checkout
	SignalOptional bool // one good iteration without the completion signal is enough
	Dirty          bool // continue in a kept worktree with uncommitted changes
	Output         *loop.Output
	Command        *Command
	Observe        func(loop.Event) // every event of the loop
	Stream         func(name string) (io.WriteCloser, error)

	// LastRuns ends when no more runs begin. This run continues, but waits no longer than ShutdownWait for a remote; nil: never.
	LastRuns context.Context

	// StopContext and KillContext end the run early, like the context of Do; nil: never. Their causes are the reason.
	StopContext context.Context // ends when the run should end soon, for example at a service's shutdown
	KillContext context.Context // ends when processes in the sandbox are to be killed; later steps have as much time as in any other run
}

// Command is the command of a run of KindCommand.
type Command struct {
	Argv           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Grace          time.Duration // from the interrupt to the kill
}

// Result is the result of a run.
type Result struct {
	Record journal.Record
	Closed bool // the issue is closed now
	// Unavailable is the reason why no other issue can be worked now either (agent, sandbox, tracker or remote); nil if others
	// can.
	Unavailable error
	// Deferred is the reason why the next sweep has to end the run; nil if it has ended.
	Deferred error
	Commits  []worktree.Commit // the agent's, oldest first
	Merged   string            // the base's new tip
	Output   *loop.OutputValue
}

// NewRecord returns the record of a new run.
func (r *Runner) NewRecord(kind journal.Kind, key string) journal.Record {
	now := time.Now()
	id := journal.NewID(now)
	rec := journal.Record{
		Run: journal.Run{
			ID: id, Kind: kind, Pool: r.c.Pool, Key: key, Attempt: 1, Host: r.host,
			Sandbox: r.c.Sandboxes.Name(), Started: now, Dir: r.Folder(key, id),
			Settings: journal.Settings{
				Publish: r.c.Publish, Weaker: r.c.Sandboxes.Capabilities().Weakness(), Limits: r.c.Retry,
				Checks: r.checks(), Review: r.c.Review.Settings(),
			},
		},
		State: journal.State{Stage: journal.StageClaim, PID: os.Getpid(), Process: r.process},
	}
	r.lot.Assign(r.c.Chain(1), &rec.Run, now)
	return rec
}

// checks returns the settings of the checks for a run that starts now.
func (r *Runner) checks() journal.Checks {
	return journal.Checks{
		Gate: r.c.Gate, Clean: r.c.GateOn == config.GateOnCheckout, Setup: r.c.Setup, Copy: r.c.Copy, Files: r.c.GateFiles, Plant: !r.c.NoCanary,
		Retest: r.c.Retest, RetestCommand: r.c.RetestCommand,
	}
}

// Do takes the run from its record's stage to its end. When ctx ends, Do kills everything, but still imports commits. When
// task.StopContext ends, Do asks the agent to end. Errors become facts of the record. Do keeps the task, and changes it.
func (r *Runner) Do(ctx context.Context, task *Task) *Result {
	stop, ctx, free := stopping.New(ctx, stopping.Config{
		StopContext: task.StopContext, KillContext: task.KillContext, LastRuns: task.LastRuns, Grace: r.c.StopGrace, ShutdownWait: r.c.ShutdownWait,
	})
	defer free()
	x := &execution{
		r: r, c: &r.c, task: task, run: task.Record.Run, stop: stop,
		log: r.c.Log.With("run", task.Record.ID, "issue", task.Record.Key),
	}
	x.events = r.events.New(x.run, x.log)
	x.events.Loop, x.events.Output = task.Observe, task.Stream
	x.claim = hold.New(task.Claim, hold.Config{
		Run: task.Record.ID, Kind: task.Record.Kind, Shared: task.Shared, TTL: r.c.ClaimTTL, Stop: stop.Switch, Log: x.log,
	})
	x.spend = &spending.Account{Run: x.run, Claim: x.claim, Issue: r.c.Budget, Own: r.c.PerRun, Log: x.log}
	state := &x.result.Record.State
	*state = task.Record.State
	if err := x.events.Open(); err != nil {
		x.deferRun(ctx, state, err)
		x.result.Record.Run = x.run
		return &x.result
	}
	x.earlier = x.earlierRuns(ctx)
	wait := x.watch(ctx)
	x.pipeline(ctx, state)
	stop.Kill(nil) // ends the watching
	wait()
	x.events.Close()
	x.result.Record.Run = x.run
	return &x.result
}
