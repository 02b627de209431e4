package cli

import (
	"fmt"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/token"
)

// How to log in is said of any kind of tracker, not of forges alone.
func TestTrackerFixWithoutToken(t *testing.T) {
	t.Parallel()
	kind := tracker.Descriptor{LoginHint: "make a token"}
	const want = "make a token; set it in one of these variables, or name another source: token-env, token-file or token-command"
	for _, err := range []error{fmt.Errorf("%w: set X", token.ErrNone), &tracker.RefusedError{Err: fmt.Errorf("list: %w", token.ErrNone)}} {
		if got := trackerFix(kind, err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
	if got := trackerFix(kind, tracker.ErrNotFound); got != "" {
		t.Errorf("%q", got)
	}
}
