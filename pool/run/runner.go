package run

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/admission"
	"github.com/ralph-pool/ralph/pool/checks"
	"github.com/ralph-pool/ralph/pool/decide"
	"github.com/ralph-pool/ralph/pool/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/judge"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/retest"
	"github.com/ralph-pool/ralph/pool/run/events"
	"github.com/ralph-pool/ralph/pool/run/hold"
	"github.com/ralph-pool/ralph/pool/run/spending"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Runner does runs. Make one with New. It is safe for concurrent use.
type Runner struct {
	c       Config
	host    string
	process string // start token of this process
	policy  publish.Policy
	opened  atomic.Bool // a sandbox has opened; a later failure concerns its own run only
	events  *events.Source
	look    atomic.Pointer[chan struct{}] // closed by the next Look

	admission *admission.Desk
	lot       *parking.Lot
	spaces    *workspace.Config
	baselines *workspace.Baselines
	watcher   *checks.Watcher
	retest    *retest.Tester
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
	c.Network.Account = ledger.NewAccount(c.Caps, c.Store, c.Name)
	state := c.Repo.StateDir()
	spaces := &workspace.Config{
		Repo: c.Repo, Agents: c.Agents(), Guest: agents.Link{Agent: c.Review.Agent, Options: c.Review.Options}, Sandboxes: c.Sandboxes, Had: c.Had,
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
		policy:    publish.Policy{Repo: c.Repo, Protected: c.Protected, Secrets: c.Secrets},
		baselines: workspace.NewBaselines(spaces, filepath.Join(state, "baselines")),
		watcher:   &checks.Watcher{Spaces: spaces}, retest: &retest.Tester{Spaces: spaces}, judge: &judge.Judge{Spaces: spaces},
	}
	r.admission = &admission.Desk{
		Store: c.Store, Pool: c.Name, Account: c.Network.Account, Budget: c.Budget.Min(c.PerRun), Estimate: c.LargestEstimate(),
		Dead: r.Dead, Lock: filepath.Join(state, "locks", "admission"),
	}
	r.events = &events.Source{Pool: c.Name, Secrets: c.Secrets, Emit: c.Emit}
	r.c.Store = &journal.Unsaved{Store: c.Store}
	r.look.Store(new(make(chan struct{})))
	return r, nil
}

// Task is one run to do. Record is required.
type Task struct {
	Record journal.Record
	Resume bool            // continue the run at its stored stage
	Claim  *worktree.Claim // nil for a run whose claim was lost
	// Shared means that another run owns the claim and uses it afterwards.
	Shared bool

	Issue       tracker.Issue                     // KindIssue: the frozen snapshot
	Follow      *tracker.FollowUp                 // the request that needs another run; nil: the issue's own
	Feedback    string                            // from earlier runs, for the first iteration
	Unpublished *journal.Record                   // an earlier run whose commits are not published yet; nil: none
	Unfit       func(tracker.Issue) tracker.Unfit // why it does not qualify any more
	Edited      func(tracker.Issue) bool          // the issue differs from the snapshot; nil: unknown
	Base        worktree.Base                     // pinned; zero: that of the configuration
	Failed      error                             // why the run cannot begin; it ends with this error

	// For prompts and commands.
	Head           bool // work in the user's checkout
	SignalOptional bool // one good iteration without the completion signal is enough
	Dirty          bool // continue in a kept worktree with uncommitted changes
	Output         *loop.Output
	Command        *Command
	Observe        func(loop.Event) // every event of the loop
	Stream         func(name string) (io.WriteCloser, error)

	// Soft ends when the run should end soon, such as at a service's shutdown.
	Soft context.Context //nolint:containedctx // the second of two contexts; see Runner.Do
	// Urgent ends, with the cause of the run's end, when what runs in the sandbox is to be killed without a grace period. What comes
	// after has as long as in any other run. Nil: never.
	Urgent context.Context //nolint:containedctx // the third of them
}

// Command is what a run of KindCommand runs.
type Command struct {
	Argv           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Grace          time.Duration // from the request to end to the kill
}

// Result is the result of a run.
type Result struct {
	Record journal.Record
	Closed bool // the issue is closed now
	// Unavailable is why no other issue can be worked now either: agent, sandbox, tracker or remote; nil if others can.
	Unavailable error
	// Deferred is why the next sweep has to end the run; nil if it has ended.
	Deferred error
	Commits  []worktree.Commit // the agent's, oldest first
	Merged   string            // the base's new tip
	Output   *loop.OutputValue
}

// NewRecord makes the record of a new run.
func (r *Runner) NewRecord(kind journal.Kind, key string) journal.Record {
	now := time.Now()
	id := journal.NewID(now)
	rec := journal.Record{
		Run: journal.Run{
			ID: id, Kind: kind, Pool: r.c.Name, Key: key, Attempt: 1, Host: r.host,
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

// checks are the checks of a run that starts now.
func (r *Runner) checks() journal.Checks {
	return journal.Checks{
		Gate: r.c.Gate, Clean: r.c.GateOn == GateOnCheckout, Setup: r.c.Setup, Copy: r.c.Copy, Files: r.c.GateFiles, Plant: !r.c.NoCanary,
		Proof: r.c.Proving, Prove: r.c.Prove,
	}
}

// Do takes the run from its record's stage to its end. When ctx ends, everything is killed, and commits are still imported. When
// task.Soft ends, the agent is asked to end. Errors become facts of the record.
func (r *Runner) Do(ctx context.Context, task Task) Result {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &execution{
		r: r, c: &r.c, task: task, run: task.Record.Run, kill: cancel, stop: halt.New(),
		log: r.c.Log.With("run", task.Record.ID, "issue", task.Record.Key),
	}
	x.events = r.events.New(x.run, x.log)
	x.events.Loop, x.events.Output = task.Observe, task.Stream
	x.claim = hold.New(task.Claim, hold.Config{
		Run: task.Record.ID, Kind: task.Record.Kind, Shared: task.Shared, TTL: r.c.ClaimTTL, Stop: x.stop, Log: x.log,
	})
	x.spend = &spending.Account{Run: x.run, Claim: x.claim, Issue: r.c.Budget, Own: r.c.PerRun, Log: x.log}
	x.ending = workspace.Ending{Grace: r.c.StopGrace, Now: ctx.Done()}
	if task.Soft != nil {
		x.ending.Soon = task.Soft.Done()
		defer x.stop.When(task.Soft)()
	}
	state, err := task.Record.State, error(nil)
	if err = x.events.Open(); err != nil {
		x.result.Record = journal.Record{Run: x.run, State: x.deferRun(run, state, err)}
		return x.result
	}
	x.earlier = x.earlierRuns(run)
	wait := x.watch(run)
	state = x.pipeline(run, state)
	cancel(nil)
	wait()
	x.events.Close()
	x.result.Record = journal.Record{Run: x.run, State: state}
	return x.result
}

// execution is one run in progress. It belongs to one goroutine; only claim, stop, kill and events are used by others.
type execution struct {
	r      *Runner
	c      *Config
	task   Task
	run    journal.Run
	claim  *hold.Claim
	stop   *halt.Switch
	kill   context.CancelCauseFunc
	events *events.Log
	spend  *spending.Account
	quiet  func() // stops the reports of progress, and waits for one that is being written
	log    *slog.Logger

	earlier []journal.Record // the issue's ended runs
	shown   atomic.Bool      // the issue has a note of progress
	edited  atomic.Bool      // the issue differs from the snapshot
	unsaved atomic.Bool      // it was reported that the journal was not written

	base      worktree.Base
	moved     bool  // base is newer than at the start of this process; for reports
	cause     error // why ctx ended, once killed is set
	asked     bool  // the agent was asked to reword its messages
	killed    bool  // only saving the work is left to do
	notOpen   error // why the sandbox did not open
	space     *workspace.Workspace
	ending    workspace.Ending
	made      *workspace.Made // files of the user's host commands
	unmerge   func()          // releases the merge lock; nil: not held
	invisible int             // characters removed from the issue's text
	result    Result
}

// stage is a function from one state to the next. An error defers the run to the next sweep, at this stage.
type stage struct {
	name journal.Stage
	do   func(*execution, context.Context, journal.State) (journal.State, error)
}

func stages() []stage {
	return []stage{
		{journal.StageBaseline, (*execution).baseline},
		{journal.StagePrepare, (*execution).prepare},
		{journal.StageWork, (*execution).work},
		{journal.StageVerify, (*execution).verify},
		{journal.StagePublish, (*execution).publish},
		{journal.StageReport, (*execution).report},
		{journal.StageLabel, (*execution).label},
		{journal.StageRelease, (*execution).release},
	}
}

// pipeline takes the state through the stages that are left.
func (x *execution) pipeline(ctx context.Context, s journal.State) journal.State {
	ctx = tracker.WithWait(ctx, x.events.Waiting)
	defer x.freeMerges()
	defer func() { x.space.Forget() }()
	defer x.dropHostFiles(ctx)
	s, from := x.resume(ctx, s)
	bounded := func() {}
	defer func() { bounded() }()
	for _, stage := range stages() {
		if stage.name.Before(from) {
			continue
		}
		if stage.name == journal.StagePrepare && s.Facts.Open == nil && s.Facts.Cut == "" {
			x.events.Emit(journal.Event{
				Kind: journal.EventStarted, Branch: x.run.Branch, Agent: x.run.Agent, Model: x.run.Model, Sandbox: x.run.Sandbox,
				Elapsed: x.run.Took(time.Now()).Seconds(),
			})
		}
		if ctx.Err() != nil && !stage.name.Before(journal.StageVerify) {
			// Killed, or the claim is lost: only saving the work is left.
			bounded()
			x.killed = true
			x.cause = context.Cause(ctx)
			ctx, bounded = x.ending.Hurried(ctx) //nolint:fatcontext // at most once a stage, and each ends the one before
		}
		s.Stage = stage.name
		if err := x.save(ctx, s); err != nil && !stage.name.Before(journal.StagePublish) {
			return x.deferRun(ctx, s, &deferral{err, true}) // what cannot be undone needs a record
		}
		x.events.Emit(journal.Event{Kind: journal.EventStage, Stage: stage.name, Elapsed: x.run.Took(time.Now()).Seconds()})
		next, err := x.do(ctx, stage, s)
		next.Facts.At, next.Facts.Usage = time.Now(), x.used(stage.name, next.Facts.Usage)
		if !stage.name.Before(journal.StageVerify) { // earlier stages have no verdict
			next.Verdict = decide.Verdict(next.Facts)
		}
		if err != nil {
			if next.Stage == journal.StageVerify { // the verdict may still change
				next.Verdict = journal.Verdict{}
			}
			return x.deferRun(ctx, next, err)
		}
		s = next
	}
	return x.end(ctx, s)
}

// save stores the state, redacted. If that fails a run works on, but does nothing outward: a later process would not know of it.
func (x *execution) save(ctx context.Context, s journal.State) error {
	s.Shown, s.Facts.Edited = s.Shown || x.shown.Load(), s.Facts.Edited || x.edited.Load()
	ctx, done := x.ending.Hurried(ctx)
	defer done()
	err := x.c.Store.Save(ctx, report.Redacted(journal.Record{Run: x.run, State: s}, x.c.Secrets))
	if err != nil && !x.unsaved.Swap(true) {
		x.log.Error("journal not written", "error", err)
		x.events.Warn(err.Error())
	}
	return err
}

// cut records at which stage the run was cut short, and why.
func (x *execution) cut(ctx context.Context, s journal.State, at journal.Stage) journal.State {
	s.Facts.Cut = at
	cause := x.stop.Cause()
	if cause == nil {
		cause = cmp.Or(x.cause, context.Cause(ctx))
	}
	halt.Note(&s.Facts, cause)
	return s
}

// stopped reports that the run is asked to end.
func (x *execution) stopped(ctx context.Context) bool {
	return x.stop.Cause() != nil || ctx.Err() != nil
}

// end stores and emits the run's end.
func (x *execution) end(ctx context.Context, s journal.State) journal.State {
	s.Stage, s.Ended = journal.StageEnd, time.Now()
	usage, reason := s.Facts.Usage, s.Verdict.Reason
	e := x.events.Stamp(journal.Event{
		Kind: journal.EventEnded, Outcome: s.Verdict.Outcome, Final: s.Verdict.Final, Reason: &reason, Branch: x.run.Branch, Commits: s.Commits,
		Usage: &usage, Free: s.Facts.Free, Elapsed: x.run.Took(s.Ended).Seconds(), Agent: x.run.Agent, Model: x.run.Model, Sandbox: x.run.Sandbox, Text: s.Published,
		Merged: journal.Record{Run: x.run, State: s}.Merged(), URL: x.run.URL, Request: s.Request.URL,
	})
	x.c.Ending(e)
	_ = x.save(ctx, s) // the stage before is stored, and repeats nothing
	x.events.Deliver(e)
	x.log.Info("run ended", "outcome", string(s.Verdict.Outcome), "reason", string(reason.Code), "detail", x.c.Secrets.Clean(cmp.Or(reason.Detail, reason.Unfit.String())), "commits", s.Commits,
		"elapsed", x.run.Took(s.Ended).Round(time.Millisecond).String())
	if err := journal.Prune(filepath.Dir(x.run.Dir), x.c.KeepRuns); err != nil {
		x.log.Warn("old runs not pruned", "error", err)
	}
	imported := s.Facts.Starved && (x.task.Resume || s.Facts.End == loop.EndSandbox) // where the engine is still away, the next run says so
	if x.result.Unavailable == nil && s.Verdict.Outcome.Unavailable() && !imported {
		x.result.Unavailable = &UnavailableError{
			Agents: x.r.c.Chain(x.run.Attempt).Choices(), Reason: s.Verdict.Reason, Failure: s.Facts.Failure, Until: s.Verdict.RetryAt, Cause: x.notOpen,
		}
	}
	return s
}
