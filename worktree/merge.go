package worktree

import (
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/merge"
)

// LockMerges takes the lock for moving base branches of this repository. It works across processes.
func (r *Repo) LockMerges(ctx context.Context) (unlock func(), err error) {
	return filelock.Lock(ctx, r.statePath("locks", "merge"))
}

func (r *Repo) merger() merge.Repo {
	return merge.Repo{
		Git: r.git, Common: r.location.Common, Top: r.location.Top, State: r.opts.StateDir, Temp: r.tempDir,
		Runs: r.statePath("worktrees"), Checkouts: r.checkouts,
	}
}

// CheckMerge fails, as Merge would, if a checkout keeps the base branch from being moved, such as by a rebase of the branch.
func (r *Repo) CheckMerge(ctx context.Context, base Base) error {
	if err := r.merger().Check(ctx, base); err != nil {
		return fmt.Errorf("merge into %s: %w", base.Name, err)
	}
	return nil
}

// Merge merges tip into the base branch; see [merge.Repo.Into]. The caller holds the lock of LockMerges.
func (r *Repo) Merge(ctx context.Context, base Base, tip, message string) (commit string, err error) {
	switch {
	case !strings.HasPrefix(base.Ref, git.Heads):
		err = fmt.Errorf("%w: it is not a branch of this repository", ErrNoBase)
	case !git.IsObject(tip) || !git.IsObject(base.Commit):
		err = fmt.Errorf("%q and %q have to be full names of commits", base.Commit, tip)
	default:
		commit, err = r.merger().Into(ctx, base, tip, message)
	}
	if err != nil {
		return "", fmt.Errorf("merge into %s: %w", base.Name, err)
	}
	return commit, nil
}
