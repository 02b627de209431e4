package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// Commits that others have pushed and nobody has pulled are not shown as the work.
func TestWorkOnABaseThatNobodyHasPulled(t *testing.T) {
	t.Parallel()
	m, work := worked(t)
	bare := filepath.Join(m.root, "bare.git")
	m.write(t, "theirs.txt", "x\n")
	m.git(t, "add", "theirs.txt")
	m.git(t, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "of others")
	m.git(t, "init", "-q", "--bare", bare)
	m.remote(t, bare)
	m.git(t, "push", "-q", "origin", "HEAD")
	m.git(t, "reset", "-q", "--hard", "HEAD~1")
	if got := m.run(t, nil, append(work, "--agent-command=false", "two")...); got.status != exit.Incomplete {
		t.Fatalf("%+v", got)
	}
	for command, want := range map[string]string{"show": "\n  no branch\n", "diff": "has no commits of its own"} {
		got := m.run(t, nil, command, "two")
		if got.status != exit.OK || strings.Contains(got.stdout, "theirs") || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := m.run(t, nil, append(work, "--gate=true", "two")...); got.status != exit.OK {
		t.Fatalf("%+v", got)
	}
	if got := m.run(t, nil, "show", "two"); strings.Contains(got.stdout, "of others") || !strings.Contains(got.stdout, "ralph/two has 1 commit that origin/") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, "diff", "two"); got.status != exit.OK || strings.Contains(got.stdout, "theirs.txt") || !strings.Contains(got.stdout, "two.txt") {
		t.Errorf("%+v", got)
	}
}
