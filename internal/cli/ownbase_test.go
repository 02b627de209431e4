package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// git runs git in the repository, and returns its output.
func (m machine) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", m.repo}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// worked returns a machine whose issue "one" has a commit on its branch, and the command line that works another issue.
func worked(t *testing.T) (m machine, work []string) {
	t.Helper()
	m = newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	program := m.program(t, "agent", "cat >/dev/null; echo x >$RALPH_ISSUE_KEY.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	for _, key := range []string{"one", "two"} {
		m.write(t, ".ralph/backlog/"+key+".md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	}
	work = []string{"work", "--sandbox=none", "--commit-author=A <a@b.c>", "--skip-permissions", "--agent-command=" + program + "/agent"}
	if got := m.run(t, nil, append(work, "one")...); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	return m, work
}

// One of ralph's branches that is checked out is no base: not for the next issue, not for a merge, and not for clean.
func TestBranchToLookAtIsNoBase(t *testing.T) {
	t.Parallel()
	m, work := worked(t)
	m.git(t, "switch", "-q", "ralph/one")
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	for _, args := range [][]string{append(work, "two"), append(own, "merge", "one"), {"clean"}, append(work, "--dry-run")} {
		got := m.run(t, nil, args...)
		if got.status != exit.Usage || !strings.Contains(got.stderr, "ralph/one, which is checked out, is ralph's own branch and cannot be the base of other issues\nralph: git switch BRANCH, or name the base: --base BRANCH") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := m.run(t, nil, "doctor", "--sandbox=none"); !strings.Contains(got.stdout, "cannot be the base of other issues") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, append(work, "--base=ralph/one", "two")...); got.status != 0 {
		t.Errorf("where it is named: %+v", got)
	}
}

// A branch that excludes ralph's branch names in git is found before any issue is claimed.
func TestBranchInTheWayOfAll(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	m.git(t, "branch", "ralph")
	const want = "the branch ralph is in the way of ralph's branches ralph/…; rename it with: git branch -m ralph OTHER, or set branch-prefix"
	got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--agent-command=true", "--skip-permissions")
	if got.status != exit.Usage || !strings.Contains(got.stderr, want) {
		t.Errorf("%+v", got)
	}
	if got = m.run(t, nil, "doctor", "--sandbox=none"); !strings.Contains(got.stdout, want) {
		t.Errorf("%+v", got)
	}
}

// The commits of a stopped agent are only merged on explicit request.
func TestMergeOfAStoppedAgent(t *testing.T) {
	t.Parallel()
	m, _ := worked(t)
	store, _ := journalIn(t, m.home, ".local", "state", "ralph", "*")
	runs, err := store.Find(t.Context(), journal.Query{Key: "one"})
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	runs[0].Verdict.Outcome, runs[0].Verdict.Final = journal.Interrupted, false
	runs[0].Facts.End, runs[0].Facts.SignalTip, runs[0].Facts.Stop = loop.EndInterrupted, "", journal.StopShutdown
	if err := store.Save(t.Context(), runs[0]); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	got := m.run(t, nil, append(own, "merge", "one")...)
	if got.status != exit.Incomplete || !strings.Contains(got.stderr, "one is not merged: its last run ended before its agent was done") || !strings.Contains(got.stderr, "`ralph merge --unfinished one`") {
		t.Errorf("%+v", got)
	}
	if got = m.run(t, nil, append(own, "merge", "--unfinished", "one")...); got.status != 0 {
		t.Errorf("%+v", got)
	}
}
