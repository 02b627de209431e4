package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const exitInterrupted = 130

// waiting is a script whose agents commit, signal that they have started, and wait.
func waiting(dir, before string) string {
	return strings.NewReplacer("DIR", dir, "BEFORE", before).Replace(`
issues:
  "*":
    - - BEFORE
      - write: {path: one.txt, text: one}
      - commit: One
      - touch: DIR/{{key}}
      - wait: DIR/go
      - say: <promise>COMPLETE</promise>
`)
}

// Ctrl-C: agents end, commits are kept, claims are released, and no attempt is counted. The next sweep continues.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, r := newScene(t, waiting(dir, "say: hello")), newRepository(t)
			keys := r.backlog(t, 4)
			p := s.start(t, r, nil, "work", "--parallel", "2")
			awaitFile(t, filepath.Join(dir, keys[0]))
			awaitFile(t, filepath.Join(dir, keys[1]))
			if err := p.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if got := p.end(t); got != exitInterrupted {
				t.Errorf("status %d, want %d", got, exitInterrupted)
			}
			if !strings.Contains(p.out.String(), "stopping: agents get 30s to end") {
				t.Error("nobody is told that ralph is stopping")
			}
			s.clean(t, r)
			starts := s.starts(t)
			for i, key := range keys {
				begun := i < 2
				if (starts[key] == 1) != begun || starts[key] > 1 {
					t.Errorf("%s was started %d times", key, starts[key])
				}
				if begun && r.commits(t, "ralph/"+key) != 1 {
					t.Errorf("%s: its commit is lost", key)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s.sweep(t, r, 0)
			for _, key := range keys {
				if s.starts(t)[key] == 0 || r.commits(t, "ralph/"+key) == 0 {
					t.Errorf("%s was not worked by the next sweep", key)
				}
			}
			s.clean(t, r)
		})
	}
}

// A second signal ends the wait for an agent that does not end, and still keeps its commit. The grace of hours ensures that
// the second signal ends the wait.
func TestInterruptTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newScene(t, waiting(dir, "ignore_term: true")), newRepository(t)
	key := r.backlog(t, 1)[0]
	p := s.start(t, r, []string{"RALPH_STOP_GRACE=5h"}, "work")
	awaitFile(t, filepath.Join(dir, key))
	// Different signals, because two pending equal ones would be merged.
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.end(t); got != exitInterrupted {
		t.Errorf("status %d, want %d", got, exitInterrupted)
	}
	if r.commits(t, "ralph/"+key) != 1 {
		t.Error("the commit is lost")
	}
	s.clean(t, r)
}
