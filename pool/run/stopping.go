package run

import (
	"cmp"
	"context"
	"time"

	"github.com/ralph-pool/ralph/pool/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/workspace"
)

// stopping carries a request to stop a run to its steps, and bounds their time after that. A run is stopped in three ways:
//
//   - A request to end, whose reason the switch keeps: the end of Task.Soft, a person, the issue, the claim or the disk.
//   - The end of Task.Urgent: processes in the sandbox are killed.
//   - The end of the run's context, with that of Do, or by kill when the claim is lost or the disk is full: only saving remains.
//
// The end of Task.Early stops no run, but from then on nothing waits long for a remote.
//
// A stage gets the run's context and derives one for each step that waits. Which one depends on what the step may cost.
type stopping struct {
	*halt.Switch
	kill          context.CancelCauseFunc // ends the run's context
	urgent        context.Context         // nil: never ends
	early         <-chan struct{}         // nil: never closed
	maxRemoteWait time.Duration           // limit for a remote, once early is closed
	ending        workspace.Ending        // limits of imports and of saving

	killed bool  // only saving the work is left
	cause  error // the reason, once killed is set
}

// newStopping returns the stopping of a task and the run's context, which derives from ctx, the context of Do. The caller calls
// free at the end of the run.
func newStopping(ctx context.Context, task Task, c *Config) (s *stopping, run context.Context, free func()) {
	s = &stopping{Switch: halt.New(), urgent: task.Urgent, maxRemoteWait: c.LastWait, ending: workspace.Ending{Grace: c.StopGrace, Now: ctx.Done()}}
	if task.Early != nil {
		s.early = task.Early.Done()
	}
	run, s.kill = context.WithCancelCause(ctx)
	unbind := func() bool { return true }
	if task.Soft != nil {
		s.ending.Soon = task.Soft.Done()
		unbind = s.When(task.Soft)
	}
	return s, run, func() { unbind(); s.kill(nil) }
}

// untilAsked bounds waiting while there is nothing to lose: the context ends as soon as the run is asked to end.
func (s *stopping) untilAsked(ctx context.Context) (context.Context, context.CancelFunc) {
	return workspace.Within(ctx, s.Done, 0)
}

// untilGrace bounds the user's commands after the agent: the context ends a grace period after the run is asked to end.
func (s *stopping) untilGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	return workspace.Within(ctx, s.Done, s.ending.Grace)
}

// untilUrgent bounds processes in the sandbox.
func (s *stopping) untilUrgent(ctx context.Context) (context.Context, context.CancelFunc) {
	return workspace.EndedBy(ctx, s.urgent)
}

// forRemote bounds waiting for a remote or a tracker while the work is safe. Its end counts as an outage, and the next sweep
// continues.
func (s *stopping) forRemote(ctx context.Context) (context.Context, context.CancelFunc) {
	asked, cancel := workspace.Waiting(ctx, s.Done, s.ending.Grace)
	limited, free := workspace.Waiting(asked, s.early, max(s.maxRemoteWait, s.ending.Grace)) // Early ends with Soft, too
	return limited, func() { free(); cancel() }
}

// forSaving bounds work that has to be done although ctx has ended.
func (s *stopping) forSaving(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.ending.Hurried(ctx)
}

// forPreparing is like forRemote, for the time before there is any work: the context also ends as soon as the run is asked to end.
func (s *stopping) forPreparing(ctx context.Context) (context.Context, context.CancelFunc) {
	asked, cancel := s.untilAsked(ctx)
	limited, free := s.forRemote(asked)
	return limited, func() { free(); cancel() }
}

// forRelease is like forSaving, for the release of the claim, and waits no longer than forRemote.
func (s *stopping) forRelease(ctx context.Context) (context.Context, context.CancelFunc) {
	leaving, cancel := s.ending.Leaving(ctx)
	limited, free := s.forRemote(leaving)
	return limited, func() { free(); cancel() }
}

// onlySave notes that the run was killed. It returns the context of the remaining stages.
func (s *stopping) onlySave(ctx context.Context) (context.Context, context.CancelFunc) {
	s.killed, s.cause = true, context.Cause(ctx)
	return s.forSaving(ctx)
}

// onlyThisRun reports whether only this run is asked to end. Then its short time for the remote says nothing about other runs.
func (s *stopping) onlyThisRun() bool { return s.Cause() != nil && !s.Is(journal.StopShutdown) }

// stopped reports whether the run is asked to end, or killed.
func (s *stopping) stopped(ctx context.Context) bool { return s.Cause() != nil || ctx.Err() != nil }

// reason returns the reason for the stop: that of the request to end or, without one, the cause of a context that has ended.
func (s *stopping) reason(ctx context.Context) error {
	if cause := s.Cause(); cause != nil {
		return cause
	}
	return cmp.Or(s.cause, context.Cause(ctx))
}
