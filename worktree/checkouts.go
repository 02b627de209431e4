package worktree

import (
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/leftover"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// checkouts lists all worktrees that git knows of, the user's and ralph's.
func (r *Repo) checkouts(ctx context.Context) ([]checkout.Checkout, error) {
	unlock, err := r.lockWorktrees(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := checkout.List(ctx, r.git)
	// If the git directory is elsewhere, as in a submodule, git lists that directory instead of the main checkout.
	if len(all) > 0 && all[0].Dir == r.location.Common && r.location.GitDir == r.location.Common {
		all[0].Dir = r.location.Top
	}
	return all, err
}

// freeBranch makes sure that no checkout has the branch checked out. It clears a worktree of ralph's whose folder and
// record are lost, or whose folder belongs to the repository that this one was copied from, and keeps its commits.
func (r *Repo) freeBranch(ctx context.Context, s Spec) error {
	all, err := r.checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if !c.Has(refname.Branch(s.Branch)) {
			continue
		}
		if !strings.HasPrefix(c.Reason, git.LockReason) || c.GitDir == "" || !leftover.IsLost(c.Dir, c.GitDir) {
			return c.Held(refname.Branch(s.Branch))
		}
		if err := r.leftovers(nil).RemoveEntry(ctx, c.GitDir, s.Key); err != nil {
			return fmt.Errorf("clear lost worktree %s: %w", c.Dir, err)
		}
	}
	return nil
}
