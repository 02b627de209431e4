package worktree

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/internal/branch"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/leftover"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Branch describes the branch and the saved changes of one key.
type Branch = leftover.Branch

// Branches lists ralph's branches and saved changes, compared with base. The list is valid even with a [*record.Errors].
func (r *Repo) Branches(ctx context.Context, base Base) ([]Branch, error) {
	var recordsErr error
	all, err := r.branches().List(ctx, base.Commit, func() (listed []branch.Tree) {
		var trees []*Tree
		trees, recordsErr = r.Trees(ctx)
		for _, t := range trees {
			listed = append(listed, branch.Tree{Dir: t.Dir(), Key: t.rec.Spec.Key, Branch: t.rec.Spec.Branch})
		}
		return listed
	})
	if err != nil {
		return nil, err
	}
	return all, recordsErr
}

// Drop deletes the key's branch and its refs, including saved changes and old tips. It fails with ErrMoved unless the
// branch (without a branch: the last imported commit) is still at tip. It refuses while a checkout has the branch.
func (r *Repo) Drop(ctx context.Context, key, tip string) error {
	if err := refname.CheckKey(key); err != nil {
		return fmt.Errorf("drop a branch: %w", err)
	}
	return r.locked(ctx, key, "drop "+key, func() error {
		return r.branches().Drop(ctx, key, tip, r.checkouts, func() error { return r.checkNoTree(ctx, key) })
	})
}

func (r *Repo) branches() branch.Lister { return branch.Lister{Git: r.git, Names: r.refNames} }

// checkNoTree fails with ErrUnsaved if the key has a worktree.
func (r *Repo) checkNoTree(ctx context.Context, key string) error {
	trees, err := r.Trees(ctx)
	broken, unreadable := errors.AsType[*record.Errors](err)
	if err != nil && !unreadable {
		return err
	}
	if unreadable { // only unreadable records of this key matter
		if err := broken.Of(key); err != nil {
			return fmt.Errorf("%w: %w", ErrUnsaved, err)
		}
	}
	for _, t := range trees {
		if t.Spec().Key == key {
			return fmt.Errorf("%w: the worktree %s still exists", ErrUnsaved, t.Dir())
		}
	}
	return nil
}
