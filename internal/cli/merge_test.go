package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// Several branches are merged together. A failing one is named, and decides the exit status.
func TestMergeSeveral(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	for _, key := range []string{"a", "b", "c"} {
		m.write(t, ".ralph/backlog/"+key+".md", "---\nlabels: [no-human]\n---\n# Add "+key+"\n")
	}
	program := m.program(t, "agent", "cat >/dev/null; echo x >$RALPH_ISSUE_KEY.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	work := append(own, "work", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent")
	if got := m.run(t, nil, work...); got.status != 0 || strings.Count(got.stderr, "\nTo look: ralph diff KEY; to merge: ralph merge KEY, or ralph merge --all\n") != 1 {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"merge"}, {"merge", "--all", "a"}} {
		if got := m.run(t, nil, args...); got.status != exit.Usage || !strings.Contains(got.stderr, "--all") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	got := m.run(t, nil, append(own, "merge", "--all", "--gate=test ! -f b.txt")...)
	if got.status != exit.Incomplete || strings.Count(got.stdout, "and the issue is closed\n") != 2 || !strings.Contains(got.stderr, "b is not merged: gate-failed") ||
		!strings.Contains(got.stderr, "1 of 3 issues not merged") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, "__completeNoDesc", "merge", ""); !strings.HasPrefix(got.stdout, "b\n:") {
		t.Errorf("offered to merge: %q", got.stdout)
	}
	got = m.run(t, nil, append(own, "merge", "b", "b", "--gate=true")...)
	if got.status != 0 || !strings.HasPrefix(got.stdout, "b: merged into m") ||
		!strings.Contains(got.stderr, "succeeded  1 commit merged into m") || strings.Count(got.stderr, "ralph clean\n") != 1 {
		t.Errorf("%+v", got)
	}
	m.write(t, ".ralph/backlog/d.md", "---\nlabels: [no-human]\n---\n# Add d\n")
	if got := m.run(t, nil, append(work, "--publish=merge")...); got.status != 0 || strings.Contains(got.stderr, "To look:") {
		t.Errorf("%+v", got)
	}
	m.write(t, ".ralph/backlog/e.md", "---\nlabels: [no-human]\n---\n# Add e\n")
	if got := m.run(t, nil, append(work, "-q")...); got.status != 0 || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, append(own, "merge", "e", "--gate=true")...); got.status != 0 {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, append(own, "merge", "--all")...); got.status != 0 || !strings.HasPrefix(got.stdout, "No issue in review") {
		t.Errorf("%+v", got)
	}
}

// --all does not merge what ralph has left to a person; naming the issue does.
func TestMergeAllLeavesWhatNobodyHasSeen(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, "check.sh", "true\n")
	m.commit(t)
	for _, key := range []string{"a", "b"} {
		m.write(t, ".ralph/backlog/"+key+".md", "---\nlabels: [no-human]\n---\n# Add "+key+"\n")
	}
	program := m.program(t, "agent", `cat >/dev/null; [ $RALPH_ISSUE_KEY = a ] || echo exit 0 >check.sh; echo x >$RALPH_ISSUE_KEY.txt
git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'
`)
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>", "--gate=sh check.sh", "--gate-canary=false"}
	if got := m.run(t, nil, append(own, "work", "--skip-permissions", "--agent-command="+program+"/agent")...); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	got := m.run(t, nil, append(own, "merge", "--all")...)
	if got.status != exit.Incomplete || !strings.HasPrefix(got.stdout, "a: merged into m") || strings.Contains(got.stdout, "b: merged") ||
		!strings.Contains(got.stderr, "b is not merged: the checks themselves have changed") || !strings.Contains(got.stderr, "1 of 2 issues not merged: a person has to decide") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, append(own, "merge", "--all")...); got.status != exit.Incomplete || got.stdout != "" {
		t.Errorf("once more: %+v", got)
	}
	if got := m.run(t, nil, append(own, "merge", "b")...); got.status != 0 || !strings.HasPrefix(got.stdout, "b: merged into m") {
		t.Errorf("named: %+v", got)
	}
}

// A conflict is reported once, and --all tries the branch again only after somebody has changed it.
func TestMergeAllTriesAConflictOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	for _, key := range []string{"a", "b", "c", "d"} {
		m.write(t, ".ralph/backlog/"+key+".md", "---\nlabels: [no-human]\n---\n# Add "+key+"\n")
	}
	program := m.program(t, "agent", `cat >/dev/null; file=$RALPH_ISSUE_KEY.txt; [ $RALPH_ISSUE_KEY != b ] || file=a.txt; echo $RALPH_ISSUE_KEY >$file
git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'
`)
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	if got := m.run(t, nil, append(own, "work", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent")...); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	got := m.run(t, nil, append(own, "merge", "--all")...)
	if got.status != exit.Incomplete || strings.Count(got.stdout, "the issue is closed\n") != 3 || strings.Count(got.stderr, "b cannot be merged with the others") != 1 {
		t.Errorf("%+v", got)
	}
	got = m.run(t, nil, append(own, "merge", "--all")...)
	if got.status != exit.Incomplete || strings.Contains(got.stderr, "b  started") || !strings.Contains(got.stderr, "b is not merged: rebase ralph/b onto m") {
		t.Errorf("once more: %+v", got)
	}
	m.git(t, "branch", "-f", "ralph/b", "ralph/c") // like a person who has resolved the conflict
	if got := m.run(t, nil, append(own, "merge", "--all")...); strings.Contains(got.stderr, "not merged") {
		t.Errorf("solved: %+v", got)
	}
}

// All messages of a merge use the same name for an issue, whatever its key is.
func TestMergeCallsAnIssueByOneName(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	for _, key := range []string{"JIRA-1", "JIRA-2", "JIRA-3"} {
		m.write(t, ".ralph/backlog/"+key+".md", "---\nlabels: [no-human]\n---\n# Add "+key+"\n")
	}
	program := m.program(t, "agent", "cat >/dev/null; echo x >$RALPH_ISSUE_KEY.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	if got := m.run(t, nil, append(own, "work", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent")...); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	failed := m.run(t, nil, append(own, "merge", "JIRA-3", "--gate=false")...)
	one := m.run(t, nil, append(own, "merge", "JIRA-1", "--gate=true")...)
	two := m.run(t, nil, append(own, "merge", "JIRA-2", "JIRA-3", "--gate=true")...)
	if !strings.Contains(failed.stderr, "JIRA-3 is not merged: ") || !strings.Contains(failed.stderr, "`ralph show JIRA-3` says") ||
		!strings.HasPrefix(one.stdout, "JIRA-1: merged into m") || !strings.Contains(two.stderr, "the gate runs on JIRA-2 and JIRA-3 together") {
		t.Errorf("%+v\n%+v\n%+v", failed, one, two)
	}
	for _, got := range []ran{failed, one, two} {
		for line := range strings.Lines(got.stdout + got.stderr) {
			if strings.Contains(strings.ReplaceAll(line, "ralph/jira", ""), "jira") {
				t.Errorf("another name: %s", line)
			}
		}
	}
}

// Commits for an earlier text of an issue are not merged silently, and the issue stays open.
func TestMergeOfAnEditedIssue(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
	program := m.program(t, "agent", "cat >/dev/null; echo x >$RALPH_ISSUE_KEY.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	if got := m.run(t, nil, append(own, "work", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent")...); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	file := filepath.Join(m.repo, ".ralph/backlog/a.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, ".ralph/backlog/a.md", strings.Replace(string(text), "# Add a\n", "# Add a\n\nAnd b.\n", 1))
	named := m.run(t, nil, append(own, "merge", "a", "--gate=true")...)
	all := m.run(t, nil, append(own, "merge", "--all", "--gate=true")...)
	if named.status != exit.Incomplete || !strings.Contains(named.stderr, "a is not merged: the issue has changed since the run began") ||
		!strings.Contains(named.stderr, "`ralph merge --edited a`") || all.status != exit.Incomplete || !strings.Contains(all.stderr, "`ralph merge --edited a`") {
		t.Errorf("%+v\n%+v", named, all)
	}
	if got := m.run(t, nil, append(own, "merge", "--edited", "a", "--gate=true")...); got.status != 0 || !strings.HasPrefix(got.stdout, "a: merged into m") {
		t.Errorf("%+v", got)
	}
}

func TestMergeOfWhatIsBeingWorked(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
	begun, goOn := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "go-on")
	for _, pipe := range []string{begun, goOn} {
		if err := unix.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := m.program(t, "agent", "cat >/dev/null; echo >"+begun+"; cat "+goOn+"; echo '<no-change>none</no-change>'\n")
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	worked := make(chan ran, 1)
	go func() {
		worked <- m.run(t, nil, append(own, "work", "--skip-permissions", "--agent-command="+program+"/agent")...)
	}()
	if _, err := os.ReadFile(begun); err != nil {
		t.Fatal(err)
	}
	got := m.run(t, nil, append(own, "merge", "a")...)
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-worked
	if got.status != exit.Incomplete || !strings.Contains(got.stderr, "a is being worked\n") || !strings.Contains(got.stderr, "`ralph stop a`") {
		t.Errorf("%+v", got)
	}
}

// TestInterruptedMerge checks that the message says that nothing was merged, and that the issue is unchanged.
func TestInterruptedMerge(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	for _, key := range []string{"a", "b"} {
		m.write(t, ".ralph/backlog/"+key+".md", "---\nlabels: [no-human]\n---\n# Add "+key+"\n")
	}
	program := m.program(t, "agent", "cat >/dev/null; echo x >$RALPH_ISSUE_KEY.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	if got := m.run(t, nil, append(own, "work", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent")...); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	path := filepath.Join(m.root, "at")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = at.Close() })
	waits := "printf x >" + path + "; sleep 300"
	for _, gate := range []string{waits, "[ ! -e a.txt ] || { " + waits + "; }"} { // it blocks on the base, or on the commits
		for _, keys := range [][]string{{"a"}, {"a"}, {"a", "b"}} {
			interrupt := make(chan struct{})
			go func() {
				_, _ = at.Read(make([]byte, 1))
				close(interrupt)
			}()
			got := m.run(t, func(h *compose.Host) { h.Interrupt = interrupt }, append(append(own, "merge", "--gate="+gate), keys...)...)
			list := strings.Join(keys, " ")
			if got.status != exit.Interrupted || !strings.HasSuffix(got.stderr, "\nralph: interrupted; not merged: "+list+"; to try again, repeat the command\n") || strings.Contains(got.stderr, "warning") {
				t.Errorf("%s: %+v", gate, got)
			}
		}
	}
	if got := m.run(t, nil, "status"); strings.Contains(got.stdout, "interrupted") || strings.Count(got.stdout, "succeeded") != 2 {
		t.Errorf("status: %+v", got)
	}
	if got := m.run(t, nil, "status", "a"); !strings.Contains(got.stdout, "  state     succeeded\n") || strings.Contains(got.stdout, "reason") {
		t.Errorf("status a: %+v", got)
	}
	if got := m.run(t, nil, "show", "a"); !strings.HasSuffix(got.stdout, "\n  next: ralph diff a\n  next: ralph merge a\n") {
		t.Errorf("show a: %+v", got)
	}
	m.git(t, "merge", "-q", "ralph/a")
	for _, next := range []string{"to remove the merged branches: ralph clean\n", ""} {
		got := m.run(t, nil, append(own, "merge", "a")...)
		if got.status != 0 || got.stdout != "a is merged already.\n" || got.stderr != next {
			t.Errorf("after a merge by git: %+v, want %q", got, next)
		}
		if got := m.run(t, nil, "clean"); got.status != 0 {
			t.Fatalf("%+v", got)
		}
	}
}

// Merging nothing succeeds if the issue is already as a merge would leave it; otherwise the error says what is missing.
func TestMergeOfNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	m.write(t, ".ralph/backlog/same.md", "---\nlabels: [no-human]\n---\n# Change nothing\n")
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>"}
	program := m.program(t, "agent", "cat >/dev/null; echo '<no-change>It is so.</no-change>'\n")
	if got := m.run(t, nil, append(own, "work", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent")...); got.status != exit.Incomplete {
		t.Fatalf("%+v", got)
	}
	got := m.run(t, nil, append(own, "merge", "same")...)
	if got.status != exit.Incomplete || !strings.HasPrefix(got.stderr, "ralph: same is not merged: nothing to merge: there is no branch ralph/same\n") ||
		!strings.HasSuffix(got.stderr, "\nralph: `ralph show same` says how its last run ended\n") {
		t.Errorf("open: %+v", got)
	}
	if got := m.run(t, nil, "close", "same"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if got := m.run(t, nil, append(own, "merge", "same", "-q")...); got.status != 0 || got.stdout != "same is closed already, with nothing to merge.\n" || got.stderr != "" {
		t.Errorf("closed: %+v", got)
	}
}
