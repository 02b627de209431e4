// Package halt has the reasons to end a run, and the time that its steps have left then.
//
// A run is in one of these states, and never goes back to an earlier one:
//
//   - Running: steps have only their own limits.
//   - Asked to end: nothing new begins, waiting that loses nothing ends, and agents and checks are interrupted.
//   - Grace over: the user's commands and calls of a sandbox provider are cut off, and a remote that has not answered counts as away.
//   - Hurried: the context of the run has ended, for example because the claim is lost. Each step that saves or releases something
//     has StageLimit left.
//   - Killed: everything is to end. Such a step has KilledStageLimit left, an import a Moment, and all steps together 30 s.
package halt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Switch passes the reasons to end a run to those who wait for one. It is safe for concurrent use.
type Switch struct {
	Asked context.Context // ended by the first Stop
	end   context.CancelCauseFunc

	mu      sync.Mutex
	reasons []*stopError // guarded by mu; in order of arrival
}

// New returns a switch that nobody has stopped.
func New() *Switch {
	s := &Switch{}
	s.Asked, s.end = context.WithCancelCause(context.Background())
	return s
}

// Stop adds the reason in a cause; a cause without one means a shutdown. Only the first cause of each reason counts.
func (s *Switch) Stop(cause error) {
	e := reasonOf(cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(e)
	if !s.has(e.stop) {
		s.reasons = append(s.reasons, e)
	}
}

// StopAfter stops the switch when ctx ends, until the caller calls free. If ctx has ended already, it stops the switch before it
// returns.
func (s *Switch) StopAfter(ctx context.Context) (free func() bool) {
	if ctx.Err() != nil { // otherwise a run could begin first
		s.Stop(context.Cause(ctx))
	}
	return context.AfterFunc(ctx, func() { s.Stop(context.Cause(ctx)) })
}

// Cause returns the reason to end; nil until the first Stop. A lost claim and an issue that no longer qualifies forbid
// publishing, so they come before earlier reasons.
func (s *Switch) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.reasons) == 0 {
		return nil
	}
	for _, strong := range []journal.Stop{journal.StopClaimLost, journal.StopSuperseded} {
		for _, e := range s.reasons {
			if e.stop == strong {
				return e
			}
		}
	}
	return s.reasons[0]
}

// Is reports whether the switch was stopped for this reason, perhaps among others.
func (s *Switch) Is(why journal.Stop) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has(why)
}

// Unfit returns why the issue no longer qualifies; zero if the switch was not stopped for that.
func (s *Switch) Unfit() tracker.Unfit {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.reasons {
		if e.stop == journal.StopSuperseded {
			return e.unfit
		}
	}
	return tracker.Unfit{}
}

// has reports whether the switch has the reason. The caller holds mu.
func (s *Switch) has(why journal.Stop) bool {
	return slices.ContainsFunc(s.reasons, func(e *stopError) bool { return e.stop == why })
}

// stopError carries a Stop as the cause of a cancelled context.
type stopError struct {
	stop  journal.Stop
	by    string
	unfit tracker.Unfit
}

func (e *stopError) Error() string {
	if by := cmp.Or(e.by, e.unfit.String()); by != "" {
		return fmt.Sprintf("%s: %s", e.stop, by)
	}
	return string(e.stop)
}

// Error returns a cause that ends a run for this reason. by may add a detail.
func Error(stop journal.Stop, by string) error { return &stopError{stop: stop, by: by} }

// Superseded returns the cause that ends a run whose issue no longer qualifies.
func Superseded(why tracker.Unfit) error { return &stopError{stop: journal.StopSuperseded, unfit: why} }

// Note records the reason in a cause in a run's facts; a cause without one means a shutdown.
func Note(f *journal.Facts, cause error) {
	e := reasonOf(cause)
	f.Stop, f.StopBy, f.Unfit = e.stop, e.by, e.unfit
}

func reasonOf(cause error) *stopError {
	if s, ok := errors.AsType[*stopError](cause); ok {
		return s
	}
	return &stopError{stop: journal.StopShutdown}
}

// Shutdown reports whether a cause ends everything at once, and not only one run.
func Shutdown(cause error) bool {
	s, ok := errors.AsType[*stopError](cause)
	return ok && s.stop == journal.StopShutdown || errors.Is(cause, errKilled)
}
