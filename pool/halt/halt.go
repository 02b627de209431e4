// Package halt carries the reasons to end a run. Package pool/run calls it.
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

// Switch carries the reasons to end a run to whoever waits for one. It is safe for concurrent use.
type Switch struct {
	Done chan struct{} // closed by the first Stop

	mu  sync.Mutex
	why []*errStop // guarded by mu; in the order they came
}

// New returns a switch that nobody has stopped.
func New() *Switch { return &Switch{Done: make(chan struct{})} }

// Stop adds the reason in a cause; a shutdown where it has none. Only the first of each kind counts.
func (s *Switch) Stop(cause error) {
	e := of(cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.why) == 0 {
		close(s.Done)
	}
	if !s.has(e.stop) {
		s.why = append(s.why, e)
	}
}

// When stops it when ctx ends, before it returns if ctx has ended, until free is called.
func (s *Switch) When(ctx context.Context) (free func() bool) {
	if ctx.Err() != nil { // else a run could begin first
		s.Stop(context.Cause(ctx))
	}
	return context.AfterFunc(ctx, func() { s.Stop(context.Cause(ctx)) })
}

// Cause is nil until somebody stops. A lost claim and an issue that does not qualify any more forbid to publish: they count
// before what came first.
func (s *Switch) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.why) == 0 {
		return nil
	}
	for _, strong := range []journal.Stop{journal.StopClaimLost, journal.StopSuperseded} {
		for _, e := range s.why {
			if e.stop == strong {
				return e
			}
		}
	}
	return s.why[0]
}

// Is reports whether it was stopped for this reason, among others.
func (s *Switch) Is(why journal.Stop) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has(why)
}

// Unfit is why the issue does not qualify any more; zero if it was not stopped for that.
func (s *Switch) Unfit() tracker.Unfit {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.why {
		if e.stop == journal.StopSuperseded {
			return e.unfit
		}
	}
	return tracker.Unfit{}
}

// has reports whether the reason is known. mu is held.
func (s *Switch) has(why journal.Stop) bool {
	return slices.ContainsFunc(s.why, func(e *errStop) bool { return e.stop == why })
}

// errStop carries a Stop as the cause of a cancelled context.
type errStop struct {
	stop  journal.Stop
	by    string
	unfit tracker.Unfit
}

func (e *errStop) Error() string {
	if by := cmp.Or(e.by, e.unfit.String()); by != "" {
		return fmt.Sprintf("%s: %s", e.stop, by)
	}
	return string(e.stop)
}

// Error is the cause to end a run with.
func Error(stop journal.Stop, by string) error { return &errStop{stop: stop, by: by} }

// Superseded is the cause to end a run with whose issue does not qualify any more.
func Superseded(why tracker.Unfit) error { return &errStop{stop: journal.StopSuperseded, unfit: why} }

// Note puts the stop of a cause into a run's facts; a shutdown where it is none.
func Note(f *journal.Facts, cause error) {
	e := of(cause)
	f.Stop, f.StopBy, f.Unfit = e.stop, e.by, e.unfit
}

func of(cause error) *errStop {
	var s *errStop
	if errors.As(cause, &s) {
		return s
	}
	return &errStop{stop: journal.StopShutdown}
}

// Shutdown reports whether a cause ends everything at once, and not one run.
func Shutdown(cause error) bool {
	var s *errStop
	return errors.As(cause, &s) && s.stop == journal.StopShutdown
}
