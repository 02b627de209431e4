package worktree

import (
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/leftover"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// checkouts lists all worktrees that git knows of, the user's and ralph's.
func (r *Repo) checkouts(ctx context.Context) ([]git.Checkout, error) {
	unlock, err := r.lockWorktrees(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := r.git.Checkouts(ctx)
	// If the git directory is elsewhere, as in a submodule, git lists that directory instead of the main checkout.
	if len(all) > 0 && all[0].Dir == r.location.Common && r.location.GitDir == r.location.Common {
		all[0].Dir = r.location.Top
	}
	return all, err
}

// gitDirOf returns the git directory of a checkout without reading files in the checkout.
func (r *Repo) gitDirOf(dir string) (string, error) {
	if dir == r.location.Top {
		return r.location.GitDir, nil
	}
	return r.git.GitDirOf(dir)
}

// freeBranch makes sure that no checkout has the branch checked out. It clears a worktree of ralph's whose folder and
// record are lost, or whose folder belongs to the repository that this one was copied from, and keeps its commits.
func (r *Repo) freeBranch(ctx context.Context, s Spec) error {
	all, err := r.checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Branch != refname.Branch(s.Branch) {
			continue
		}
		gitDir, err := r.gitDirOf(c.Dir)
		if !strings.HasPrefix(c.Reason, git.LockReason) || err == nil && !leftover.IsLost(c.Dir, gitDir) {
			return fmt.Errorf("branch %s is checked out in %s; free it with: git -C %s switch --detach", s.Branch, c.Dir, git.Quote(c.Dir))
		}
		if err == nil {
			err = r.leftovers(nil).RemoveEntry(ctx, gitDir, s.Key)
		}
		if err != nil {
			return fmt.Errorf("clear lost worktree %s: %w", c.Dir, err)
		}
	}
	return nil
}
