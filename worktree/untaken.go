package worktree

import (
	"context"
	"fmt"
)

// Untaken says what in the worktree is on no ref of ralph's and can be handed back; empty: nothing. It fails with
// ErrKept where that cannot be said, or nothing can be done about it. Nothing is changed.
func (t *Tree) Untaken(ctx context.Context) (string, error) {
	s := t.Spec()
	unlock, err := t.repo.lock(ctx, s.Key)
	if err != nil {
		return "", fmt.Errorf("look at worktree of %s: %w", s.Key, err)
	}
	defer unlock()
	left, err := t.untaken(ctx)
	if err != nil {
		return "", fmt.Errorf("look at worktree of %s: %w", s.Key, err)
	}
	return left.what, nil
}

// Discard deletes the worktree (never the refs) with whatever is in it.
func (t *Tree) Discard(ctx context.Context) error {
	unlock, err := t.repo.lock(ctx, t.Spec().Key)
	if err != nil {
		return fmt.Errorf("discard worktree of %s: %w", t.Spec().Key, err)
	}
	defer unlock()
	return t.discard()
}

// checkHandedBack refuses while something in the worktree is on no ref of ralph's.
func (t *Tree) checkHandedBack(ctx context.Context) error {
	left, err := t.untaken(ctx)
	switch {
	case err != nil || left.what == "":
		return err
	case left.keep == "":
		return fmt.Errorf("%w: %s has %s", ErrKept, t.Dir(), left.what)
	}
	return fmt.Errorf("%w: %s has %s, which is on no ref of ralph's; keep it with: %s", ErrKept, t.Dir(), left.what, left.keep)
}

// leftInside is what a worktree has and ralph's refs have not.
type leftInside struct {
	what string // empty: nothing
	keep string // a command that keeps it; may be empty
}

// untaken looks at the files and the refs as they are now.
func (t *Tree) untaken(ctx context.Context) (leftInside, error) {
	var none leftInside
	files, admin := t.exists()
	if !files && !admin || t.halfMade() {
		return none, nil
	}
	if !admin {
		return none, fmt.Errorf("%w: git's record of %s is gone; save what you need of it, then: rm -r %s",
			ErrKept, t.Dir(), quote(t.Dir()))
	}
	l, err := t.inspect(ctx)
	if err != nil {
		return none, fmt.Errorf("%w: %s cannot be checked: %w", ErrKept, t.Dir(), err)
	}
	refs, err := t.readRefs(ctx)
	if err != nil {
		return none, err
	}
	if l.head != refs.work {
		left := leftInside{what: "commit " + short(l.head)}
		if !t.record().Private { // else the repository has no such commit
			left.keep = fmt.Sprintf("git -C %s branch NAME %s", quote(t.repo.top), l.head)
		}
		return left, nil
	}
	if len(l.changes) == 0 {
		return none, nil
	}
	tree, err := t.nameChanges(ctx, l)
	if err != nil {
		return none, fmt.Errorf("%w: %s: %w", ErrKept, t.Dir(), err)
	}
	saved := false
	if refs.wip != "" {
		if saved, err = t.sameChanges(ctx, refs.wip, tree, l.head); err != nil {
			return none, err
		}
	}
	if !saved {
		return leftInside{what: fmt.Sprintf("uncommitted changes (%s)", printable(l.changes[0].path))}, nil
	}
	return none, nil
}
