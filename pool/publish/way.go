package publish

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/worktree"
)

// InTheWay says what of the user's keeps the checkout of a base branch from moving on to a commit. The error wraps
// worktree.ErrDirty then. It is nil when nothing does, or another branch is checked out.
func InTheWay(ctx context.Context, repo *worktree.Repo, base worktree.Base, tip string) error {
	if on, err := repo.Base(ctx, ""); err != nil || on.Ref != base.Ref {
		return nil //nolint:nilerr // none is checked out
	}
	path, err := repo.Git().InTheWay(ctx, repo.Dir(), tip)
	if err != nil || path == "" {
		return err
	}
	return fmt.Errorf("%w in %s (%s) are in the way; commit or stash them first", worktree.ErrDirty, repo.Dir(), path)
}
