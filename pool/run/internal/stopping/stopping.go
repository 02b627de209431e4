// Package stopping carries a request to stop a run to the run's steps. Package pool/run uses it.
package stopping

import (
	"cmp"
	"context"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Config has the ways to stop a run from outside, and how long its steps may take after that. A context that is nil never ends.
type Config struct {
	StopContext  context.Context // its end asks the run to end
	KillContext  context.Context // its end kills the processes in the sandbox
	LastRuns     context.Context // after its end nothing waits long for a remote
	Grace        time.Duration   // limit of most steps, once the run is asked to end
	ShutdownWait time.Duration   // limit for a remote, once LastRuns has ended
}

// Stopping carries a request to stop a run to its steps, and bounds their time after that. A run is stopped in three ways:
//
//   - A request to end, whose reason the switch keeps: the end of Config.StopContext, a person, the issue, the claim or the disk.
//   - The end of Config.KillContext: processes in the sandbox are killed.
//   - The end of the run's context, by its parent, or by Kill when the claim is lost or the disk is full: only saving remains.
//
// The end of Config.LastRuns stops no run. Make one with New.
//
// A stage gets the run's context and derives one for each step that waits. Which one depends on what the step may cost.
type Stopping struct {
	*halt.Switch
	Kill context.CancelCauseFunc // ends the run's context
	c    Config

	Killed bool  // only saving the work is left
	cause  error // the reason, once Killed is set
}

// New returns the stopping of a run and the run's context, which derives from ctx. The caller calls free at the end of the run.
func New(ctx context.Context, c Config) (s *Stopping, run context.Context, free func()) {
	s = &Stopping{Switch: halt.New(), c: c}
	run, s.Kill = context.WithCancelCause(ctx)
	unbind := func() bool { return true }
	if c.StopContext != nil {
		unbind = s.StopAfter(c.StopContext)
	}
	return s, run, func() { unbind(); s.Kill(nil) }
}

// UntilAsked bounds waiting while there is nothing to lose: the context ends as soon as the run is asked to end.
func (s *Stopping) UntilAsked(ctx context.Context) (context.Context, context.CancelFunc) {
	return halt.Within(ctx, halt.Grace(s.Asked, 0))
}

// UntilUrgent bounds processes in the sandbox.
func (s *Stopping) UntilUrgent(ctx context.Context) (context.Context, context.CancelFunc) {
	return halt.Within(ctx, halt.Limit{After: s.c.KillContext})
}

// ForCommands is UntilUrgent for the user's commands after the agent, which also have only a grace period.
func (s *Stopping) ForCommands(ctx context.Context) (context.Context, context.CancelFunc) {
	return halt.Within(ctx, halt.Limit{After: s.c.KillContext}, halt.Grace(s.Asked, s.c.Grace))
}

// ForRemote bounds waiting for a remote or a tracker while the work is safe. Its end counts as an outage, and the next sweep
// continues.
func (s *Stopping) ForRemote(ctx context.Context) (context.Context, context.CancelFunc) {
	return halt.Within(ctx, s.remote()...)
}

func (s *Stopping) remote() []halt.Limit {
	return []halt.Limit{
		halt.RemoteGrace(s.Asked, s.c.Grace),
		halt.RemoteGrace(s.c.LastRuns, max(s.c.ShutdownWait, s.c.Grace)), // LastRuns ends with StopContext, too
	}
}

// ForPreparing is like ForRemote, for the time before there is any work: the context also ends as soon as the run is asked to end.
func (s *Stopping) ForPreparing(ctx context.Context) (context.Context, context.CancelFunc) {
	return halt.Within(ctx, append(s.remote(), halt.Grace(s.Asked, 0))...)
}

// ForRelease is halt.Hurried for the release of the claim. It waits no longer than ForRemote, and only a moment after StopContext.
func (s *Stopping) ForRelease(ctx context.Context) (context.Context, context.CancelFunc) {
	return halt.Hurried(ctx, append(s.remote(), halt.Grace(s.c.StopContext, halt.Moment))...)
}

// OnlySave notes that the run was killed. It returns the context of the remaining stages.
func (s *Stopping) OnlySave(ctx context.Context) (context.Context, context.CancelFunc) {
	s.Killed, s.cause = true, context.Cause(ctx)
	return halt.Hurried(ctx)
}

// OnlyThisRun reports whether only this run is asked to end. Then its short time for the remote says nothing about other runs.
func (s *Stopping) OnlyThisRun() bool { return s.Cause() != nil && !s.Is(journal.StopShutdown) }

// Stopped reports whether the run is asked to end, or killed.
func (s *Stopping) Stopped(ctx context.Context) bool { return s.Cause() != nil || ctx.Err() != nil }

// Reason returns the reason for the stop: that of the request to end or, without one, the cause of a context that has ended.
func (s *Stopping) Reason(ctx context.Context) error {
	if cause := s.Cause(); cause != nil {
		return cause
	}
	return cmp.Or(s.cause, context.Cause(ctx))
}
