package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ralph run is killed after its agent has committed. Clean does what its dry run announces. The next run reports which work
// it has imported and where it is; after that, clean treats this work as commits on a branch.
func TestCleanAfterAKilledRun(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, doIt), newRepository(t)
	r.write(t, "a.txt", "a\n")
	r.commit(t, "start")
	waits := `RALPH_AGENT_COMMAND=sh -c 'echo x >x.txt && git add x.txt && git commit -qm Work && echo y >y.txt && echo up >` +
		s.path("up") + ` && exec sleep 1000'`
	p := s.start(t, r, []string{waits}, "run", "--branch-strategy", "merge-to-head", "--prompt", "Do it")
	await(t, "the agent's commit", func() bool { _, err := os.Stat(s.path("up")); return err == nil })
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := p.end(t); got != -int(syscall.SIGKILL) {
		t.Fatalf("ralph was to be killed, and ended with %d", got)
	}
	said := func(args ...string) string {
		t.Helper()
		p := s.start(t, r, nil, args...)
		if got := p.end(t); got != 0 {
			t.Fatalf("ralph %q: status %d", args, got)
		}
		return p.out.String()
	}
	if would := said("clean", "--dry-run"); strings.Count(would, "\n") != 3 || !strings.Contains(would, "its run died") {
		t.Errorf("dry run:\n%s", would)
	}
	again := said("clean")
	branches := r.lines(t, "for-each-ref", "--format=%(refname:short)", "refs/heads/ralph")
	if len(branches) != 1 || r.commits(t, branches[0]) != 1 {
		t.Fatalf("branches %q", branches)
	}
	for _, want := range []string{"had died", "1 commit kept on branch " + branches[0], "uncommitted changes kept as", "ralph clean --discard " + filepath.Base(branches[0])} {
		if !strings.Contains(again, want) {
			t.Errorf("%q does not say %q", again, want)
		}
	}
	if again := said("sandbox", "exec", "--", "true"); strings.Contains(again, "had died") {
		t.Errorf("said twice: %s", again)
	}
	if would, did := said("clean", "--dry-run"), said("clean"); !strings.Contains(would, "1 commit not in main") || !strings.Contains(did, "1 commit not in main") {
		t.Errorf("dry run:\n%sreal:\n%s", would, did)
	}
	said("clean", "--discard", filepath.Base(branches[0]))
	if left := r.lines(t, "for-each-ref", "refs/ralph", "refs/heads/ralph"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	s.clean(t, r)
}

// An issue that is being worked is listed once, even if its worktree and branch exist already. So is a job, whose claim is
// never on a remote.
func TestCleanWhileWorking(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"work": {"work"}, "run": {"run", "--branch-strategy", "merge-to-head", "--prompt", "Do it"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, upstream := newScene(t, doIt), newRepository(t)
			upstream.backlog(t, 1)
			r := upstream.clone(t)
			waits := `RALPH_AGENT_COMMAND=sh -c 'echo up >` + s.path("up") + ` && exec sleep 1000'`
			p := s.start(t, r, []string{waits}, args...)
			await(t, "the agent", func() bool { _, err := os.Stat(s.path("up")); return err == nil })
			for _, flag := range []string{"--dry-run=true", "--dry-run=false"} {
				c := s.start(t, r, nil, "clean", flag)
				if got := c.end(t); got != 0 || strings.Count(c.out.String(), "\n") != 2 || !strings.Contains(c.out.String(), "it is being worked") {
					t.Errorf("clean %s: status %d\n%s", flag, got, &c.out)
				}
			}
			if err := p.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			p.end(t)
		})
	}
}
