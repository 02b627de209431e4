package index

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/worktree/git"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	os.Exit(m.Run())
}

func TestHidesChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		hides  bool
	}{
		"empty":             {`true`, false},
		"plain":             {`echo a >a; echo b >bcdefghi; git add .`, false},
		"to be added":       {`echo a >a; echo b >b; git add -N a; git add b`, false},
		"assumed unchanged": {`echo a >a; echo b >b; git add .; git update-index --assume-unchanged b`, true},
		"skipped":           {`echo a >a; echo b >b; git add .; git update-index --skip-worktree a`, true},
		"version 4":         {`echo a >a; git add .; git update-index --index-version 4 --skip-worktree a`, true},
		"split":             {`echo a >a; git add .; git update-index --skip-worktree a; git update-index --split-index`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			script := exec.CommandContext(t.Context(), "sh", "-ec", "git init -q; "+c.script)
			if script.Dir = dir; script.Run() != nil {
				t.Fatal("the index is not made")
			}
			common := filepath.Join(dir, ".git")
			if hides, err := HidesChanges(t.Context(), git.New(t.TempDir()).Pin(common, common, dir)); err != nil || hides != c.hides {
				t.Errorf("hides %v, %v", hides, err)
			}
		})
	}
}
