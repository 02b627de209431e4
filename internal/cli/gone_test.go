package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestBranchThatIsGone checks that status does not name a removed branch, and that diff and tree call its commits the run's.
func TestBranchThatIsGone(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# One\n")
	m.commit(t)
	program := m.program(t, "agent", "cat >/dev/null; echo new >f; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	if got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	said := func(at string, gone bool) {
		t.Helper()
		if got := m.run(t, nil, "status", "one"); got.status != 0 || strings.Contains(got.stdout, "ralph/one") == gone {
			t.Errorf("status: %+v", got)
		}
		if got := m.run(t, nil, "diff", "one"); got.status != 0 || !strings.HasSuffix(got.stdout, "+new\n") ||
			strings.HasPrefix(got.stderr, "branch ralph/one is gone; run ") != gone || strings.Contains(got.stderr, "; this is what it changed\n") != gone {
			t.Errorf("diff: %+v", got)
		}
		if got := m.run(t, nil, "tree", "one", filepath.Join(m.root, at)); got.status != 0 || strings.HasPrefix(got.stderr, "branch ralph/one is gone; run ") != gone {
			t.Errorf("tree: %+v", got)
		}
	}
	said("before", false)
	if got := m.run(t, nil, "clean", "--discard", "one"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	said("after", true)
}

// TestMergedWhateverIsCheckedOut checks that a run is compared with the base at which it began.
func TestMergedWhateverIsCheckedOut(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# One\n")
	m.commit(t)
	if out, err := exec.CommandContext(t.Context(), "git", "-C", m.repo, "branch", "other").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program := m.program(t, "agent", "cat >/dev/null; echo new >f; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	if got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--gate=true", "--publish=merge", "--skip-permissions", "--agent-command="+program+"/agent"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"switch", "--quiet", "other"}, {"checkout", "--quiet", "--detach"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", m.repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := m.run(t, nil, "status"); got.status != 0 || !strings.Contains(got.stdout, "one    merged ") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// TestDiffOfARunWithoutCommits checks that diff does not present other commits as the run's.
func TestDiffOfARunWithoutCommits(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	m.run(t, nil, "work", "--sandbox=none", "--agent-command=false", "--commit-author=A <a@b.c>")
	for range 2 {
		const want = "nothing differs: one has no commits of its own\n"
		if got := m.run(t, nil, "diff", "one"); got.status != exit.OK || got.stdout != "" || got.stderr != want {
			t.Errorf("%+v", got)
		}
		m.run(t, nil, "clean")
	}
}
