package run

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run/internal/events"
	"github.com/ralph-pool/ralph/pool/run/internal/hold"
	"github.com/ralph-pool/ralph/pool/run/internal/spending"
	"github.com/ralph-pool/ralph/pool/run/internal/stopping"
	"github.com/ralph-pool/ralph/tracker"
)

// execution is one run in progress: its task, the parts that all stages use, and values that stages leave for later ones. Data
// that outlives the process is in the journal.State that stages take and return. It belongs to one goroutine; other goroutines
// use only claim, stop, events and watched.
type execution struct {
	r    *Runner
	c    *Config
	task *Task
	run  journal.Run // does not change, except for what Prepare chooses: Base, ExcludedCommit and RestartReason
	log  *slog.Logger

	stop   *stopping.Stopping
	claim  *hold.Claim
	events *events.Log
	spend  *spending.Account
	watched
	saveFailureReported atomic.Bool // a failed write of the journal was reported

	prepared                       // set by the stage Prepare; for a run that has died, by resume
	askedToReword bool             // the agent was asked to reword its commit messages
	invisible     int              // characters removed from the text
	unlockMerges  func()           // releases the merge lock, which Verify takes for Publish; nil: not held
	earlier       []journal.Record // the ended runs, for reports
	result        Result
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

// pipeline takes the state through the remaining stages. It and its helpers take a pointer, because each copy of a state makes the
// stack of every run larger.
func (x *execution) pipeline(ctx context.Context, s *journal.State) {
	ctx = tracker.WithWait(ctx, x.events.Waiting)
	defer x.releaseMergeLock()
	defer func() { x.space.Forget() }()
	defer x.dropHostFiles(ctx)
	from := x.resume(ctx, s)
	free := func() {}
	defer func() { free() }()
	for _, stage := range stages() {
		if stage.name.Before(from) {
			continue
		}
		if ctx.Err() != nil && !stage.name.Before(journal.StageVerify) {
			free()
			ctx, free = x.stop.OnlySave(ctx) //nolint:fatcontext // at most once a stage, and each ends the one before
		}
		if err := x.beginStage(ctx, stage, s); err != nil {
			x.deferRun(ctx, s, err)
			return
		}
	}
	x.end(ctx, s)
}

// beginStage stores that a stage begins, and does the stage.
func (x *execution) beginStage(ctx context.Context, stage stage, s *journal.State) error {
	if stage.name == journal.StagePrepare && s.Facts.Open == nil && s.Facts.StoppedStage == "" {
		x.events.Emit(journal.Event{
			Kind: journal.EventStarted, Branch: x.run.Branch, Agent: x.run.Agent, Model: x.run.Model, Sandbox: x.run.Sandbox,
			Elapsed: x.run.DurationUntil(time.Now()).Seconds(),
		})
	}
	s.Stage = stage.name
	if err := x.save(ctx, *s); err != nil && !stage.name.Before(journal.StagePublish) {
		return &deferral{err, true} // an effect that cannot be undone needs a record
	}
	x.events.Emit(journal.Event{Kind: journal.EventStage, Stage: stage.name, Elapsed: x.run.DurationUntil(time.Now()).Seconds()})
	err := x.doStage(ctx, stage, s)
	s.Facts.CompletedAt, s.Facts.Usage = time.Now(), x.addLaterUsage(stage.name, s.Facts.Usage)
	if !stage.name.Before(journal.StageVerify) { // earlier stages have no verdict
		s.Verdict = decide.Verdict(s.Facts)
	}
	if err != nil && s.Stage == journal.StageVerify { // the verdict may still change
		s.Verdict = journal.Verdict{}
	}
	return err
}

// doStage does a stage. Task.KillContext ends the stages in which the agent works. Stages that only report have limited time for the
// remote.
func (x *execution) doStage(ctx context.Context, stage stage, s *journal.State) (err error) {
	if stage.name.Before(journal.StageWork) && s.Facts.Open == nil && s.Facts.StoppedStage == "" && x.stop.Stopped(ctx) { // no agent has begun
		s.Facts.StoppedStage = stage.name
		halt.Note(&s.Facts, x.stop.Reason(ctx))
		return nil
	}
	cancel := context.CancelFunc(func() {})
	switch {
	case stage.name.Before(journal.StageVerify):
		ctx, cancel = x.stop.UntilUrgent(ctx)
	case journal.StagePublish.Before(stage.name):
		ctx, cancel = x.stop.ForRemote(ctx)
	}
	defer cancel()
	*s, err = stage.do(x, ctx, *s)
	return err
}

// save stores the redacted state. After a failure the run continues, but does nothing outward: no later process would know of it.
func (x *execution) save(ctx context.Context, s journal.State) error {
	s.Shown, s.Facts.Edited = s.Shown || x.progressShown.Load(), s.Facts.Edited || x.edited.Load()
	ctx, done := halt.Hurried(ctx)
	defer done()
	err := x.c.Store.Save(ctx, report.Redacted(journal.Record{Run: x.run, State: s}, x.c.Secrets))
	if err != nil && !x.saveFailureReported.Swap(true) {
		x.log.Error("journal not written", "error", err)
		x.events.Warn(err.Error())
	}
	return err
}

// cut records at which stage the run was cut short, and why.
func (x *execution) cut(ctx context.Context, s journal.State, at journal.Stage) journal.State {
	s.Facts.StoppedStage = at
	halt.Note(&s.Facts, x.stop.Reason(ctx))
	return s
}

// end stores the end of the run and emits its event.
func (x *execution) end(ctx context.Context, s *journal.State) {
	s.Stage, s.Ended = journal.StageEnd, time.Now()
	usage, reason := s.Facts.Usage, s.Verdict.Reason
	e := x.events.Stamp(journal.Event{
		Kind: journal.EventEnded, Outcome: s.Verdict.Outcome, Final: s.Verdict.Final, Reason: &reason,
		Agent: x.run.Agent, Model: x.run.Model, Sandbox: x.run.Sandbox,
		Usage: &usage, CostUnknown: journal.Record{Run: x.run, State: *s}.CostUnknown(), Elapsed: x.run.DurationUntil(s.Ended).Seconds(),
		Branch: x.run.Branch, Commits: s.Commits, Text: s.Published, Merged: journal.Record{Run: x.run, State: *s}.Merged(),
		URL: x.run.URL, Request: s.Request.URL,
	})
	x.c.OnEnd(e)
	_ = x.save(ctx, *s) // on failure the stage before is stored; repeating it has no effect
	x.events.Deliver(e)
	detail := x.c.Secrets.Clean(cmp.Or(reason.Detail, reason.Unfit.String()))
	x.log.Info("run ended", "outcome", string(s.Verdict.Outcome), "reason", string(reason.Code), "detail", detail,
		"commits", s.Commits, "elapsed", x.run.DurationUntil(s.Ended).Round(time.Millisecond).String())
	if err := journal.Prune(filepath.Dir(x.run.Dir), x.c.KeepRuns, journal.LogsLimit); err != nil {
		x.log.Warn("old runs not pruned", "error", err)
	}
	imported := s.Facts.Starved && (x.task.Resume || s.Facts.End == loop.EndSandbox) // if the engine is still away, the next run reports it
	if x.result.Unavailable == nil && s.Verdict.Outcome.Unavailable() && !imported {
		x.result.Unavailable = &UnavailableError{
			Agents: x.r.c.Chain(x.run.Attempt).Choices(), Reason: s.Verdict.Reason, Failure: s.Facts.Failure, Until: s.Verdict.RetryAt, Cause: x.openErr,
		}
	}
}
