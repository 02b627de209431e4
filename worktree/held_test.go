package worktree

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// operations are what a user does with a branch, in a checkout of it with two commits of its own, and how it ends.
var operations = map[string]struct{ begin, end, op string }{
	"rebase":            {`GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -q -i HEAD~2`, "git rebase --abort", "rebase"},
	"rebase of patches": {`git rebase -q --apply --onto HEAD~2 HEAD~1`, "git rebase --abort", "rebase"},
	"rebase of a stack": {`git switch -qc top; GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -q -i --update-refs HEAD~2`, "git rebase --abort", "rebase"},
	"bisection":         {`git bisect start HEAD HEAD~2`, "git bisect reset", "bisect"},
}

// A base branch is not moved during a rebase or bisection of it, in whatever checkout: the end would put it back.
func TestMergeDuringARebase(t *testing.T) {
	t.Parallel()
	for name, c := range operations {
		for _, linked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.commit(f.dir, "b", "x", "mine 1")
				f.commit(f.dir, "b", "y", "mine 2")
				tip, base, dir := f.branchWith("1", "one", "1"), f.base(), f.dir
				if linked {
					dir = filepath.Join(realDir(t), "side")
					f.git("switch", "-q", "-c", "other")
					f.git("worktree", "add", "-q", dir, "main")
				}
				_, _ = f.try(dir, "sh", "-c", c.begin)
				if _, err := f.try(dir, "git", "symbolic-ref", "-q", "HEAD"); err == nil {
					t.Fatal("the operation has not begun")
				}
				for range 2 {
					_, err := f.repo.Merge(t.Context(), base, tip, "m")
					want := "the " + c.op + " of branch main has not ended in " + dir + "; end it with: git " + c.op
					if !errors.Is(err, ErrUnended) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
						t.Errorf("%v, want %s", err, want)
					}
				}
				if at := f.ref("refs/heads/main"); at != base.Commit {
					t.Errorf("main has moved from %s to %s", base.Commit, at)
				}
				f.sh(dir, "sh", "-c", c.end)
				if _, err := f.repo.Merge(t.Context(), base, tip, "m"); err != nil || f.ref("refs/heads/main") != tip {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
	}
}
