package worktree

import (
	"context"

	"github.com/ralph-pool/ralph/internal/filelock"
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

// CheckMerge fails, as Merge would, if a checkout keeps the base branch from being moved, such as by a rebase of the branch, or by
// files of the user's (ErrDirty).
func (r *Repo) CheckMerge(ctx context.Context, base Base, tip string) error {
	return r.merger().Check(ctx, base, tip)
}

// Merge merges tip into the base branch; see [merge.Repo.MergeInto]. The caller holds the lock of LockMerges.
func (r *Repo) Merge(ctx context.Context, base Base, tip, message string) (commit string, err error) {
	return r.merger().MergeInto(ctx, base, tip, message)
}
