package hint

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/token"
)

// How to log in is said of any kind of tracker, not of forges alone.
func TestTrackerFixWithoutToken(t *testing.T) {
	t.Parallel()
	kind := tracker.Descriptor{LoginHint: "make a token"}
	const want = "make a token; set it in one of these variables, or name another source: token-env, token-file or token-command"
	for _, err := range []error{fmt.Errorf("%w: set X", token.ErrNone), &tracker.RefusedError{Err: fmt.Errorf("list: %w", token.ErrNone)}} {
		if got := Tracker(kind, err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
	if got := Tracker(kind, tracker.ErrNotFound); got != "" {
		t.Errorf("%q", got)
	}
}

// A folder that cannot be written is told with the key that chooses another.
func TestReadOnlyState(t *testing.T) {
	t.Parallel()
	if got := For(fmt.Errorf("mkdir: %w", unix.EROFS)); !strings.Contains(got, "state-dir") {
		t.Errorf("%q", got)
	}
}

// A refused connection is told with the flag that lets it through, if any does.
func TestRefusedConnectionNamesItsFlag(t *testing.T) {
	t.Parallel()
	refused := func(where, why string) string { return "network: " + where + " was refused (" + why + "), 2 times" }
	for line, want := range map[string]string{
		refused("a.example:443", "not-allowed"):          "; --allow a.example, or allow: [a.example], lets it through",
		refused("a.example:8081", "not-allowed"):         "; --allow a.example:8081, or allow: [a.example:8081], lets it through",
		refused("mirror.corp:443", "address-refused"):    "; --allow-private mirror.corp, or allow-private: [mirror.corp], lets it through",
		refused("localhost:4873", "not-allowed"):         "; --allow-private localhost:4873, or allow-private: [localhost:4873], lets it through",
		refused("10.1.2.3:443", "not-allowed"):           "; --allow-private 10.1.2.3, or allow-private: [10.1.2.3], lets it through",
		refused("169.254.169.254:80", "not-allowed"):     "",
		refused("169.254.169.254:80", "address-refused"): "",
		refused("a.example:443", "too-many"):             "",
		"network: 5 more refusals":                       "",
	} {
		if got := Raising(line); got != line+want {
			t.Errorf("%q", got)
		}
	}
	e := &workspace.BaselineError{Refused: []string{refused("127.0.0.1:8081", "not-allowed"), refused("b.invalid:443", "not-allowed"), refused("b.invalid:80", "not-allowed")}}
	const want = "no agent was started; if they may be reached: --allow-private 127.0.0.1:8081 --allow b.invalid; otherwise correct the command"
	if got := Baseline(e, func(string) bool { return false }); got != want {
		t.Errorf("%q", got)
	}
	if got := Baseline(&workspace.BaselineError{}, nil); !strings.Contains(got, "--allow HOST") {
		t.Errorf("where nothing was refused: %q", got)
	}
}
