package cli

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
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

// An argument of top that is no address of a service is none of a repository either.
func TestTopAddress(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	want := ran{status: exit.Usage, stderr: "ralph: \"nosuch\" is no address of a service; give HOST:PORT, http://HOST:PORT or unix:PATH\n"}
	if got := m.run(t, nil, "top", "nosuch"); got != want {
		t.Errorf("%+v", got)
	}
	got := m.run(t, func(h *compose.Host) { h.Dir = m.home }, "top")
	if lines := strings.Split(got.stderr, "\n"); got.status != exit.Usage || len(lines) != 3 || !strings.HasSuffix(lines[0], "make one with: git init ROOT/home") ||
		!strings.HasPrefix(lines[1], "ralph: or name the repository's folder: --repo FOLDER; or give a service's address: no service listens at ") {
		t.Errorf("%+v", got)
	}
}

// An issue that cannot be read has not succeeded, whichever command it is named to.
func TestBrokenIssueStatus(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/broken.md", "---\ntitle: Broken\nstate: perhaps\n---\n")
	m.commit(t)
	for _, command := range []string{"status", "show", "close", "reopen", "retry"} {
		if got := m.run(t, nil, command, "broken"); got.status != exit.Incomplete || !strings.Contains(got.stderr, "broken.md:3: ") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}
