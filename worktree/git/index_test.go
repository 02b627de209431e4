package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is read off an index is what git says of it.
func TestHidesChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		hides  bool
		asked  bool // git has to be asked
	}{
		"empty":             {`true`, false, false},
		"plain":             {`echo a >a; echo b >bcdefghi; git add .`, false, false},
		"to be added":       {`echo a >a; echo b >b; git add -N a; git add b`, false, false},
		"assumed unchanged": {`echo a >a; echo b >b; git add .; git update-index --assume-unchanged b`, true, false},
		"skipped":           {`echo a >a; echo b >b; git add .; git update-index --skip-worktree a`, true, false},
		"version 4":         {`echo a >a; git add .; git update-index --index-version 4 --skip-worktree a`, true, true},
		"split":             {`echo a >a; git add .; git update-index --skip-worktree a; git update-index --split-index`, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.git("-c", "alias.do=!"+c.script, "do")
			gitDir := filepath.Join(r.dir, ".git")
			if hides, err := r.HidesChanges(t.Context(), gitDir, false); err != nil || hides != c.hides {
				t.Errorf("hides %v, %v", hides, err)
			}
			index, err := os.ReadFile(filepath.Join(gitDir, "index"))
			if err != nil {
				t.Fatal(err)
			}
			if hides, ok := hidesChanges(index); ok == c.asked || ok && hides != c.hides {
				t.Errorf("hides %v, read %v", hides, ok)
			}
			if hides, err := r.HidesChanges(t.Context(), gitDir, true); err != nil || hides != c.hides {
				t.Errorf("git says %v, %v", hides, err)
			}
		})
	}
}

func FuzzIndex(f *testing.F) {
	f.Add("DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + strings.Repeat("\x00", 60) + "\x00\x01a\x00")
	f.Fuzz(func(_ *testing.T, index string) { hidesChanges([]byte(index)) })
}
