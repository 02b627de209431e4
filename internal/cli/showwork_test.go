package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestShowFindsTheBranch: `ralph show` names the branch, whatever its prefix, and the commit where the branch is gone.
func TestShowFindsTheBranch(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", m.repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	git("checkout", "--quiet", "-b", "m$(id);x")
	agent := m.program(t, "agent", "echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	identity := func(h *Host) { h.Env = append(h.Env, "RALPH_COMMIT_AUTHOR=a <a@b>") }
	work := []string{"work", "--sandbox=none", "--skip-permissions", "--agent-command=" + filepath.Join(agent, "agent"), "--gate=true", "--branch-prefix=bots/"}
	if got := m.run(t, identity, work...); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	got := m.run(t, nil, "show", "one")
	for _, want := range []string{"  bots/one has 1 commit that m$(id);x has not\n", "  next: ralph diff one\n", "  next: ralph merge one\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing in %+v", want, got)
		}
	}
	git("branch", "-D", "bots/one")
	if got := m.run(t, nil, "show", "one"); !strings.Contains(got.stdout, " has 1 commit that m$(id);x has not\n") {
		t.Errorf("without its branch: %+v", got)
	}
}
