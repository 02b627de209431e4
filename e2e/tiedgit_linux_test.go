package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// ralph is killed while git runs for it: git ends, too.
func TestGitEndsWithRalph(t *testing.T) {
	t.Parallel()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := fmt.Sprintf("#!/bin/sh\ncase \"$1 $2\" in 'read-tree '*) touch '%s/busy'; exec sleep 1000;; esac\nexec '%s' \"$@\"\n", dir, real)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	s, r := newScene(t, doIt), newRepository(t)
	r.backlog(t, 1)
	path := "PATH=" + dir + ":" + os.Getenv("PATH")
	p := s.start(t, r, []string{path}, "work")
	awaitFile(t, filepath.Join(dir, "busy"))
	sleeps := func() bool { return len(processesWith(t, path)) > 1 }
	await(t, "git", sleeps)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
	await(t, "the end of git", func() bool { return len(processesWith(t, path)) == 0 })
	s.sweep(t, r, 0)
	s.clean(t, r)
}
