package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// The commits of an agent that never said that it was done are only merged on explicit request, however its run ended. Its last
// words are not quoted as if they were a summary.
func TestMergeOfAnAgentThatWasNotDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, ends, flag string }{
		{"iterations", "echo 'I will look further.'", "--max-iterations=2"},
		{"failure", "echo 'I will look further.'; exit 1", "--gate=true"},
		{"gate", "echo '<promise>COMPLETE</promise>'", "--gate=test ! -e a.txt"},
		{"question", "echo '<needs-info>Which?</needs-info>'", "--gate=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".gitignore", ".ralph\n")
			m.commit(t)
			m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
			program := m.program(t, "agent", "cat >/dev/null; echo x >>a.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x; "+c.ends+"\n")
			own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
			work := append(own, "work", "--max-iterations=1", "--skip-permissions", "--agent-command="+program+"/agent", c.flag)
			if got := m.run(t, nil, work...); got.status != exit.Incomplete {
				t.Fatalf("%+v", got)
			}
			got := m.run(t, nil, append(own, "merge", "a", "--gate=true")...)
			if got.status != exit.Incomplete || !strings.Contains(got.stderr, "a is not merged: its last run ended before its agent was done\n") ||
				!strings.Contains(got.stderr, "`ralph merge --unfinished a`") {
				t.Errorf("%+v", got)
			}
			if got := m.run(t, nil, append(own, "merge", "a", "--unfinished", "--gate=true")...); got.status != 0 {
				t.Errorf("%+v", got)
			}
			if text, err := os.ReadFile(filepath.Join(m.repo, ".ralph/backlog/a.md")); err != nil || strings.Contains(string(text), "last words") {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}

// A later run whose agent did not start takes nothing from commits that were done.
func TestMergeAfterARunWithoutAgent(t *testing.T) {
	t.Parallel()
	m, work := worked(t)
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	if got := m.run(t, nil, append(work, "one", "--setup=false")...); got.status == 0 {
		t.Fatalf("%+v", got)
	}
	if got := m.run(t, nil, append(own[:0:0], "retry", "one")...); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if got := m.run(t, nil, append(work, "one", "--setup=false")...); got.status == 0 {
		t.Fatalf("%+v", got)
	} else {
		t.Log(got)
	}
	if got := m.run(t, nil, append(own, "merge", "one")...); got.status != 0 {
		t.Errorf("%+v", got)
	}
}

// TestNextAfterNoChange checks that the first next step is to close the issue, wherever ralph names it.
func TestNextAfterNoChange(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
	program := m.program(t, "agent", "cat >/dev/null; echo '<no-change>It is so.</no-change>'\n")
	work := []string{"work", "--sandbox=none", "--commit-author=A <a@b.c>", "--gate=true", "--skip-permissions", "--agent-command=" + program + "/agent"}
	if got := m.run(t, nil, work...); got.status != exit.Incomplete {
		t.Fatalf("%+v", got)
	}
	text, err := os.ReadFile(filepath.Join(m.repo, ".ralph/backlog/a.md"))
	if err != nil || !strings.Contains(string(text), "Next: close the issue with `ralph close a` if you agree;") {
		t.Errorf("%s, %v", text, err)
	}
	m.write(t, ".ralph/backlog/a.md", strings.Replace(string(text), "# Add a\n", "# Add a\n\nAnd b.\n", 1))
	if got := m.run(t, nil, "merge", "a", "--sandbox=none", "--commit-author=A <a@b.c>"); got.status != exit.Incomplete || !strings.Contains(got.stderr, "nothing to merge") ||
		strings.Contains(got.stderr, "--edited") {
		t.Errorf("merge: %+v", got)
	}
	m.write(t, ".ralph/backlog/a.md", string(text))
	if got := m.run(t, nil, "show", "a"); !strings.HasSuffix(got.stdout, "\n  next: ralph close a  # if you agree\n  next: ralph edit a  # if not, add details; then ralph work a\n") {
		t.Errorf("show: %+v", got)
	}
	if got := m.run(t, nil, append(work, "--dry-run")...); !strings.Contains(got.stdout, "; nothing was changed: `ralph close a` if you agree, `ralph work a` works it again\n") {
		t.Errorf("plan: %+v", got)
	}
}

// TestMergeKeepsOtherChanges checks that the checkout moves with changes of the user's, unless they are in the way.
func TestMergeKeepsOtherChanges(t *testing.T) {
	t.Parallel()
	m, _ := worked(t)
	merge := []string{"merge", "one", "--sandbox=none", "--commit-author=A <a@b.c>"}
	m.write(t, "one.txt", "mine\n")
	if got := m.run(t, nil, merge...); got.status != exit.Incomplete || !strings.Contains(got.stderr, "(one.txt) are in the way") {
		t.Errorf("%+v", got)
	}
	if err := os.Rename(filepath.Join(m.repo, "one.txt"), filepath.Join(m.repo, "other.txt")); err != nil {
		t.Fatal(err)
	}
	if got := m.run(t, nil, merge...); got.status != 0 {
		t.Errorf("%+v", got)
	}
	if text, err := os.ReadFile(filepath.Join(m.repo, "other.txt")); err != nil || string(text) != "mine\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// One refusal names everything that keeps commits from being merged, and one command for all of it.
func TestMergeNamesAllObstacles(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
	program := m.program(t, "agent", "cat >/dev/null; echo x >>a.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x\n")
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	work := append(own[:2:2], "work", "--max-iterations=1", "--skip-permissions", "--agent-command="+program+"/agent", "--gate=true")
	if got := m.run(t, nil, work...); got.status != exit.Incomplete {
		t.Fatalf("%+v", got)
	}
	edit := func(state string) {
		m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\nstate: "+state+"\n---\n# Add a and b\n")
	}
	edit("closed")
	const undone, edited = "its last run ended before its agent was done", "the issue has changed since the run began"
	for _, flags := range [][]string{nil, {"--unfinished"}, {"--edited"}} {
		got := m.run(t, nil, append(append(own[:2:2], "merge", "a", "--gate=true"), flags...)...)
		if got.status != exit.Incomplete || !strings.Contains(got.stderr, "a is not merged: it is closed; ") ||
			strings.Contains(got.stderr, undone) == slices.Contains(flags, "--unfinished") ||
			strings.Contains(got.stderr, edited) == slices.Contains(flags, "--edited") ||
			!strings.Contains(got.stderr, "`ralph reopen a` reopens it; then `ralph merge --unfinished --edited a` merges the commits as they are") {
			t.Errorf("%q: %+v", flags, got)
		}
	}
	edit("open")
	if got := m.run(t, nil, append(own[:2:2], "merge", "a", "--unfinished", "--edited", "--gate=true")...); got.status != 0 {
		t.Errorf("%+v", got)
	}
}
