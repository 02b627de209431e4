package run

import (
	"context"
	"errors"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/merge"
)

// rebase takes the merge lock and rebases the commits onto the base's present tip. If that changes anything, it examines the checks
// again. The run holds the lock until it has published.
func (x *execution) rebase(ctx context.Context, s journal.State) (journal.State, error) {
	if err := x.takeMergeLock(ctx); err != nil {
		return s, err
	}
	base, err := x.c.Repo.Base(ctx, x.base.Ref)
	if err != nil {
		return s, err
	}
	over, err := x.c.Repo.Contains(ctx, s.Tip, x.base.Commit)
	if err != nil || over && base.Commit == x.base.Commit && s.BuiltOn == base.Commit {
		return s, err
	}
	tip, err := x.space.Tree.Rebase(ctx, base, s.BuiltOn)
	if errors.Is(err, worktree.ErrConflict) {
		s.Facts.Conflict = err.Error()
		if how, ok := errors.AsType[*merge.ConflictError](err); ok {
			s.Facts.Hopeless, s.Facts.Solve = how.Hopeless, nil
			for _, args := range how.Commands {
				s.Facts.Solve = append(s.Facts.Solve, "git "+args)
			}
		}
		return s, nil
	}
	if err != nil {
		return s, err
	}
	x.base, x.baseMoved, s.Tip, s.BuiltOn = base, true, tip, base.Commit
	commits, err := x.c.Repo.Log(ctx, base.Commit, tip)
	if err != nil {
		return s, err
	}
	if len(commits) > 0 { // none: the commits are in the base since a ralph that has died
		s.Commits = len(commits)
	}
	if s.Verified.Tip != tip || s.Verified.Base != base.Commit {
		s.Facts.Verify, s.Facts.Watch = nil, nil
	}
	return x.readChecks(ctx, s, base)
}

func (x *execution) takeMergeLock(ctx context.Context) error {
	if x.unlockMerges != nil {
		return nil
	}
	waiting, enough := x.stop.UntilAsked(ctx)
	defer enough()
	unlock, err := x.c.Repo.LockMerges(waiting)
	x.unlockMerges = unlock
	return err
}

func (x *execution) releaseMergeLock() {
	if x.unlockMerges != nil {
		x.unlockMerges()
		x.unlockMerges = nil
	}
}
