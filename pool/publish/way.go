package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/span"
)

// InTheWay says what of the user's keeps the checkout of a base branch from moving on to a commit. The error wraps
// worktree.ErrDirty then. It is nil when nothing does, or another branch is checked out.
func InTheWay(ctx context.Context, repo *worktree.Repo, base worktree.Base, tip string) error {
	if on, err := repo.Base(ctx, ""); err != nil || on.Ref != base.Ref {
		return nil //nolint:nilerr // none is checked out
	}
	if related, err := repo.Spans().Related(ctx, base.Commit, tip); err != nil || !related {
		return err // nothing moves then
	}
	path, err := repo.Git().InTheWay(ctx, repo.Dir(), tip)
	if err != nil || path == "" {
		return err
	}
	return fmt.Errorf("%w in %s (%s) are in the way; commit or stash them first", worktree.ErrDirty, repo.Dir(), path)
}

// ErrNothing is wrapped by the error of a branch that is not there, or has no new commit.
var ErrNothing = errors.New("nothing to merge")

// MergeBase is the base branch that a merge of a branch moves, and the tip to merge. It fails if there is ErrNothing. tip is empty
// if the branch differs between this repository and the remote.
func MergeBase(ctx context.Context, repo *worktree.Repo, onto, branch string) (base worktree.Base, tip string, err error) {
	if base, err = repo.Base(ctx, onto); err != nil {
		return base, "", err
	}
	there, err := repo.RemoteTips(ctx, branch)
	if err != nil {
		return base, "", err
	}
	remote := there[branch]
	refs, err := repo.Git().Refs(ctx, "refs/heads/"+branch)
	if err != nil {
		return base, "", err
	}
	here := refs["refs/heads/"+branch]
	if here == remote || remote == "" {
		tip = here
	}
	for _, at := range []string{here, remote} {
		if at == "" {
			continue
		}
		if has, err := span.Absorbed(ctx, repo.Git(), base.Commit, []string{at}); err != nil || !has[at] {
			return base, tip, cmp.Or(err, InTheWay(ctx, repo, base, at))
		}
	}
	if here+remote == "" {
		return base, "", fmt.Errorf("%w: there is no branch %s", ErrNothing, branch)
	}
	return base, "", fmt.Errorf("%w: %s has no change that %s lacks", ErrNothing, branch, base.Name)
}
