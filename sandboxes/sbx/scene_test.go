package sbx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// scene is a linked worktree and a private repository.
type scene struct {
	worktree, private, objects, tools string
	git                               string // content of the worktree's own .git file
}

func newScene(t *testing.T) scene {
	t.Helper()
	top := t.TempDir()
	s := scene{
		worktree: filepath.Join(top, "worktree"), private: filepath.Join(top, "private.git"),
		objects: filepath.Join(top, "objects"), tools: filepath.Join(top, "tools"), git: "gitdir: /the/user/.git/worktrees/w\n",
	}
	for _, dir := range []string{s.objects, s.tools} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	exit, err := proc.Run(t.Context(), proc.Spec{
		Argv: []string{"git", "init", "--quiet", "--separate-git-dir", s.private, s.worktree}, Dir: top, Stdout: &out, Stderr: &out,
		Env: append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1"),
	})
	if err != nil || exit.Code != 0 {
		t.Fatalf("git init: %v\n%s", err, &out)
	}
	if err := os.WriteFile(filepath.Join(s.worktree, ".git"), []byte(s.git), 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s scene) spec(run string) sandboxes.Spec {
	return sandboxes.Spec{
		Run: run, Worktree: s.worktree, GitDir: s.private, Objects: []string{s.objects}, RequireIsolation: true,
		Mounts: []sandboxes.Mount{{Host: s.tools, Inside: s.tools, ReadOnly: true}},
		Limits: sandboxes.Limits{Memory: 8 << 30, CPUs: 4.5, PIDs: 100},
	}
}
