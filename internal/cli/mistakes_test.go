package cli

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// A slip in a key is answered with the key that was meant, also of an issue that is closed.
func TestNearestKey(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/fix-login.md", "---\ntitle: Fix\nstate: closed\n---\n")
	m.commit(t)
	m.git(t, "branch", "ralph/fix-login")
	for _, line := range []string{"work --agent-command=true --sandbox=none --skip-permissions fix-logn", "work -n --agent-command=true fix-logn", "prompt fix-logn", "clean fix-logn"} {
		if got := m.run(t, nil, strings.Fields(line)...); got.status != exit.Usage || !strings.HasSuffix(got.stderr, "did you mean fix-login?\n") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
