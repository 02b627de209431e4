package branch

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
)

// Drop deletes the key's branch and its other refs. It fails with git.ErrMoved unless the branch is at tip, see Tip, and while
// one of the checkouts has it. check may refuse, too.
func (l Lister) Drop(
	ctx context.Context, key, tip string, checkouts func(context.Context) ([]checkout.Checkout, error), check func() error,
) error {
	ref := l.Names.Branches + key
	refs, err := l.Git.Refs(ctx, ref, l.Names.Work(key), l.Names.WIP(key), l.Names.OldTipPrefix(key))
	if err != nil {
		return err
	}
	if at := Tip(l.Names, refs, ref, key); at != tip {
		return fmt.Errorf("%w: it is at %s, expected %s", git.ErrMoved, git.OrNothing(at), git.OrNothing(tip))
	}
	all, err := checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Has(ref) {
			return c.Held(ref)
		}
	}
	if err := check(); err != nil {
		return err
	}
	edits := make([]git.Edit, 0, len(refs))
	for ref, sha := range refs {
		edits = append(edits, git.Edit{Ref: ref, Old: sha})
	}
	return l.Git.MoveRefs(ctx, edits...)
}

// Held returns the branches with a prefix that checkouts of the user's have, by full ref.
type Held func(ctx context.Context, prefix string) (map[string]*checkout.HeldError, error)

// DropUnused removes a key's branch and work ref if both are at the commit, the key has no other refs, and no checkout has the branch.
func (l Lister) DropUnused(ctx context.Context, key, name, at string, held Held) error {
	ref, work := refname.Branch(name), l.Names.Work(key)
	refs, err := l.Git.Refs(ctx, ref, work, l.Names.WIP(key), l.Names.OldTipPrefix(key))
	if err != nil || len(refs) != 2 || refs[ref] != at || refs[work] != at {
		return err
	}
	users, err := held(ctx, name)
	if err != nil || users[ref] != nil {
		return err
	}
	return l.Git.MoveRefs(ctx, git.Edit{Ref: ref, Old: at}, git.Edit{Ref: work, Old: at})
}
