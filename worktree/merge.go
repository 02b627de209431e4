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

// Merge merges tip into the base branch; see [merge.Repo.Into]. The caller holds the lock of LockMerges.
func (r *Repo) Merge(ctx context.Context, base Base, tip, message string) (commit string, err error) {
	mergeRepo := merge.Repo{
		Git: r.git, Common: r.location.Common, Top: r.location.Top, GitDir: r.gitDirOf,
		State: r.opts.StateDir, Temp: r.tempDir, Runs: r.statePath("worktrees"), Checkouts: r.checkouts,
	}
	switch {
	case !strings.HasPrefix(base.Ref, git.Heads):
		err = fmt.Errorf("%w: it is not a branch of this repository", ErrNoBase)
	case !git.IsObject(tip) || !git.IsObject(base.Commit):
		err = fmt.Errorf("%q and %q have to be full names of commits", base.Commit, tip)
	default:
		commit, err = mergeRepo.Into(ctx, base, tip, message)
	}
	if err != nil {
		return "", fmt.Errorf("merge into %s: %w", base.Name, err)
	}
	return commit, nil
}
