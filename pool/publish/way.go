package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/span"
)

// ErrNothing means that a branch does not exist or has no new commit.
var ErrNothing = errors.New("nothing to merge")

// MergeBase returns the base branch into which a branch is to be merged, and the tip to merge. It wraps ErrNothing if there
// is nothing to merge. tip is "" if the branch differs between this repository and the remote.
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
	held, err := repo.HeldBranches(ctx, branch)
	if err != nil {
		return base, "", err
	} else if why := held["refs/heads/"+branch]; why != nil {
		return base, "", why
	}
	if here == remote || remote == "" {
		tip = here
	}
	for _, at := range []string{here, remote} {
		if at == "" {
			continue
		}
		if has, err := span.Absorbed(ctx, repo.Git(), base.Commit, []string{at}); err != nil || !has[at] {
			return base, tip, cmp.Or(err, repo.CheckMerge(ctx, base, at))
		}
	}
	if here+remote == "" {
		return base, "", fmt.Errorf("%w: there is no branch %s", ErrNothing, branch)
	}
	return base, "", fmt.Errorf("%w: %s has no change that %s lacks", ErrNothing, branch, base.Name)
}
