package run

import (
	"cmp"
	"context"
	"time"

	"github.com/ralph-pool/ralph/pool/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/workspace"
)

// stopping is how a run may be stopped, and how long its steps go on then. A run is stopped in three ways:
//
//   - it is asked to end, for a reason that the switch keeps: the end of Task.Soft, a person, its issue, its claim, the disk;
//   - Task.Urgent ends: what runs in the sandbox is killed;
//   - its context ends, with that of Do, or with kill when the claim is lost or the disk is full: only saving the work is left.
//
// The end of Task.Early stops no run, but nothing waits long for a remote then.
//
// A stage gets the run's context, and derives one for each step that waits. Which one depends on what the step may cost.
type stopping struct {
	*halt.Switch
	kill   context.CancelCauseFunc // ends the run's context
	urgent context.Context         // nil: never ends
	early  <-chan struct{}         // nil: never closed
	last   time.Duration           // for a remote, once early is closed
	ending workspace.Ending        // for imports, too

	killed bool  // only saving the work is left
	cause  error // why, once killed is set
}

// newStopping returns how a task may be stopped whose Do has this context. run is the run's context. free is for the end of the run.
func newStopping(ctx context.Context, task Task, c *Config) (s *stopping, run context.Context, free func()) {
	s = &stopping{Switch: halt.New(), urgent: task.Urgent, last: c.LastWait, ending: workspace.Ending{Grace: c.StopGrace, Now: ctx.Done()}}
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

// untilAsked is for waiting while there is nothing to lose: it ends as soon as the run is asked to end.
func (s *stopping) untilAsked(ctx context.Context) (context.Context, context.CancelFunc) {
	return workspace.Within(ctx, s.Done, 0)
}

// untilGrace is for the user's commands after the agent: it ends a grace period after the run is asked to end.
func (s *stopping) untilGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	return workspace.Within(ctx, s.Done, s.ending.Grace)
}

// untilUrgent is for what runs in the sandbox.
func (s *stopping) untilUrgent(ctx context.Context) (context.Context, context.CancelFunc) {
	return workspace.EndedBy(ctx, s.urgent)
}

// remote is for waiting for a remote or a tracker while the work is safe: its end counts as an outage, and the next sweep goes on.
func (s *stopping) remote(ctx context.Context) (context.Context, context.CancelFunc) {
	asked, cancel := workspace.Waiting(ctx, s.Done, s.ending.Grace)
	limited, free := workspace.Waiting(asked, s.early, max(s.last, s.ending.Grace)) // Early ends with Soft, too
	return limited, func() { free(); cancel() }
}

// saving is for what has to be done although ctx has ended.
func (s *stopping) saving(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.ending.Hurried(ctx)
}

// beginning is remote before there is any work: it ends as soon as the run is asked to end, too.
func (s *stopping) beginning(ctx context.Context) (context.Context, context.CancelFunc) {
	asked, cancel := s.untilAsked(ctx)
	limited, free := s.remote(asked)
	return limited, func() { free(); cancel() }
}

// leaving is saving for giving the claim back, which waits no longer than remote.
func (s *stopping) leaving(ctx context.Context) (context.Context, context.CancelFunc) {
	leaving, cancel := s.ending.Leaving(ctx)
	limited, free := s.remote(leaving)
	return limited, func() { free(); cancel() }
}

// onlySave notes that the run was killed. The rest of its stages has the context that it returns.
func (s *stopping) onlySave(ctx context.Context) (context.Context, context.CancelFunc) {
	s.killed, s.cause = true, context.Cause(ctx)
	return s.saving(ctx)
}

// alone reports that only this run is asked to end: its impatience says nothing about others.
func (s *stopping) alone() bool { return s.Cause() != nil && !s.Is(journal.StopShutdown) }

// stopped reports that the run is asked to end, or killed.
func (s *stopping) stopped(ctx context.Context) bool { return s.Cause() != nil || ctx.Err() != nil }

// why is the reason in a context that has ended, unless the run was asked to end before.
func (s *stopping) why(ctx context.Context) error {
	if cause := s.Cause(); cause != nil {
		return cause
	}
	return cmp.Or(s.cause, context.Cause(ctx))
}
