package git

import "testing"

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
			r := newRepo(t)
			r.git("-c", "alias.do=!"+c.script, "do")
			if hides, err := r.HidesChanges(t.Context()); err != nil || hides != c.hides {
				t.Errorf("hides %v, %v", hides, err)
			}
		})
	}
}
