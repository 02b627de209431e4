package cli

import (
	"strings"
	"testing"
)

// Several branches are merged in one go; the one that fails is named, and counts in the exit status.
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
	if got := m.run(t, nil, append(own, "work", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent")...); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"merge"}, {"merge", "--all", "a"}} {
		if got := m.run(t, nil, args...); got.status != exitUsage || !strings.Contains(got.stderr, "--all of them") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	got := m.run(t, nil, append(own, "merge", "--all", "--gate=test ! -f b.txt")...)
	if got.status != exitIncomplete || strings.Count(got.stdout, "and the issue is closed\n") != 2 || !strings.Contains(got.stderr, "b is not merged: gate-failed") ||
		!strings.Contains(got.stderr, "1 of 3 issues not merged") {
		t.Errorf("%+v", got)
	}
	got = m.run(t, nil, append(own, "merge", "b", "b", "--gate=true")...)
	if got.status != 0 || !strings.HasPrefix(got.stdout, "b: merged into m") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, append(own, "merge", "--all")...); got.status != 0 || !strings.HasPrefix(got.stdout, "No branch") {
		t.Errorf("%+v", got)
	}
}
