package halt

import (
	"context"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

func noted(s *Switch) (f journal.Facts) {
	Note(&f, s.Cause())
	return f
}

// A reason that forbids publishing counts, whatever came before it.
func TestEveryReasonIsKept(t *testing.T) {
	t.Parallel()
	s := New()
	if s.Cause() != nil || s.Is(journal.StopAsked) {
		t.Error("it is stopped")
	}
	s.Stop(Error(journal.StopAsked, ""))
	s.Stop(Error(journal.StopShutdown, ""))
	<-s.Asked.Done()
	if f := noted(s); f.Stop != journal.StopAsked {
		t.Errorf("cause %v", f.Stop)
	}
	closed := tracker.Unfit{Code: tracker.UnfitClosed}
	s.Stop(Superseded(closed))
	if f := noted(s); f.Stop != journal.StopSuperseded || f.Unfit != closed {
		t.Errorf("cause %v %v", f.Stop, f.Unfit)
	}
	s.Stop(Error(journal.StopClaimLost, ""))
	if f := noted(s); f.Stop != journal.StopClaimLost || s.Unfit() != closed {
		t.Errorf("cause %v, the issue is %v", f.Stop, s.Unfit())
	}
	for _, why := range []journal.Stop{journal.StopAsked, journal.StopShutdown, journal.StopSuperseded, journal.StopClaimLost} {
		if !s.Is(why) {
			t.Errorf("%s is forgotten", why)
		}
	}
}

// When stops the switch at once if the context has ended already.
func TestWhenItHasEndedBefore(t *testing.T) {
	t.Parallel()
	ended, stop := context.WithCancelCause(t.Context())
	stop(Error(journal.StopAsked, ""))
	s := New()
	defer s.StopAfter(ended)()
	if f := noted(s); f.Stop != journal.StopAsked {
		t.Errorf("cause %q", f.Stop)
	}
}
