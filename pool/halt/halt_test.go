package halt

import (
	"errors"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A reason that forbids to publish counts, whatever came before it.
func TestEveryReasonIsKept(t *testing.T) {
	t.Parallel()
	s := New()
	if s.Cause() != nil || s.Is(journal.StopAsked) {
		t.Error("it is stopped")
	}
	s.Stop(journal.StopAsked, "")
	s.Stop(journal.StopShutdown, "")
	<-s.Done
	if why, _ := Of(s.Cause()); why != journal.StopAsked {
		t.Errorf("cause %v", why)
	}
	s.Stop(journal.StopSuperseded, "closed")
	if why, by := Of(s.Cause()); why != journal.StopSuperseded || by != "closed" {
		t.Errorf("cause %v %q", why, by)
	}
	s.Stop(journal.StopClaimLost, "")
	if why, _ := Of(s.Cause()); why != journal.StopClaimLost || errors.Is(s.Cause(), nil) {
		t.Errorf("cause %v", why)
	}
	for _, why := range []journal.Stop{journal.StopAsked, journal.StopShutdown, journal.StopSuperseded, journal.StopClaimLost} {
		if !s.Is(why) {
			t.Errorf("%s is forgotten", why)
		}
	}
}
