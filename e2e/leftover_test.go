package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// commitsInside is an agent that needs no program of the tests, which a native sandbox cannot see.
const commitsInside = `RALPH_AGENT_COMMAND=sh -c 'echo done >done.txt && git add done.txt && git commit -qm Done && echo "<promise>COMPLETE</promise>"'`

// privateTemp returns a temporary folder that only the test's ralph processes use, with a path short enough for a socket's.
func privateTemp(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the native sandbox is Linux's")
	}
	dir, err := os.MkdirTemp("", "left-") //nolint:usetesting // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// leftIn lists what egress proxies have left.
func leftIn(t *testing.T, dir string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "ralph-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// ralph is killed in a run with a sandbox. The next start removes what the run had in the system's temporary folder.
func TestKilledWithASandbox(t *testing.T) {
	t.Parallel()
	temp := privateTemp(t)
	s, r := newScene(t, doIt), newRepository(t)
	r.backlog(t, 1)
	env := []string{"RALPH_SANDBOX=native", "TMPDIR=" + temp, commitsInside}
	p := s.start(t, r, append(env, "RALPH_TEST_CRASH_AT=work"), "work")
	if got := p.end(t); got != -int(syscall.SIGKILL) {
		t.Fatalf("ralph was to kill itself, and ended with %d", got)
	}
	if left := leftIn(t, temp); len(left) != 1 {
		t.Fatalf("the killed run had %q, want one folder", left)
	}
	if got := s.start(t, r, env, "work").end(t); got != 0 {
		t.Errorf("the next sweep ends with status %d", got)
	}
	if left := leftIn(t, temp); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	s.clean(t, r)
}

// The same for jobs without a backlog. The next job cleans up, and so does `ralph clean`.
func TestKilledJobWithASandbox(t *testing.T) {
	t.Parallel()
	waits := "echo up >up.txt && exec sleep 1000"
	for name, args := range map[string][]string{
		"run":  {"run", "--prompt", "Do it"},
		"exec": {"sandbox", "exec", "--", "sh", "-c", waits},
	} {
		for next, then := range map[string][]string{"again": {"sandbox", "exec", "--", "true"}, "clean": {"clean"}} {
			t.Run(name+" "+next, func(t *testing.T) {
				t.Parallel()
				temp := privateTemp(t)
				s, r := newScene(t, doIt), newRepository(t)
				r.write(t, ".gitignore", "up.txt\n")
				r.commit(t, "nothing to keep")
				env := []string{"RALPH_SANDBOX=native", "TMPDIR=" + temp, "RALPH_AGENT_COMMAND=sh -c '" + waits + "'"}
				p := s.start(t, r, env, args...)
				await(t, "a command in the sandbox", func() bool {
					up, err := filepath.Glob(s.path("state/*/*/worktrees/*/files/up.txt"))
					return err == nil && len(up) > 0
				})
				if err := p.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				p.end(t)
				if left := leftIn(t, temp); len(left) != 1 {
					t.Fatalf("the killed run had %q, want one folder", left)
				}
				if got := s.start(t, r, env, then...).end(t); got != 0 {
					t.Errorf("ralph %s ends with status %d", then[0], got)
				}
				if left := leftIn(t, temp); len(left) > 0 {
					t.Errorf("%q is left", left)
				}
			})
		}
	}
}
