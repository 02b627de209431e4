package worktree

import (
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/internal/traces"
)

// checkouts lists all worktrees that git knows of, the user's and ralph's.
func (r *Repo) checkouts(ctx context.Context) ([]checkout.Checkout, error) {
	unlock, err := r.lockWorktrees(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := checkout.List(ctx, r.git)
	// If the git directory is elsewhere, as in a submodule, git lists that directory instead of the main checkout.
	if len(all) > 0 && all[0].Dir == r.location.Common && r.location.GitDir == r.location.Common {
		all[0].Dir = r.location.Top
	}
	return all, err
}

// freeBranch makes sure that no checkout has the branch checked out. It clears a worktree of ralph's whose folder and
// record are lost, or whose folder belongs to the repository that this one was copied from, and keeps its commits.
func (r *Repo) freeBranch(ctx context.Context, s Spec) error {
	all, err := r.checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if !c.Has(refname.Branch(s.Branch)) {
			continue
		}
		if !strings.HasPrefix(c.Reason, git.LockReason) || c.GitDir == "" || !traces.IsLost(c.Dir, c.GitDir) {
			return c.Held(refname.Branch(s.Branch))
		}
		if err := r.leftovers(nil).RemoveEntry(ctx, c.GitDir, s.Key); err != nil {
			return fmt.Errorf("clear lost worktree %s: %w", c.Dir, err)
		}
	}
	return nil
}

// HeldBranches returns the branches of this prefix that checkouts of the user's have, by full ref. Runs cannot use them.
func (r *Repo) HeldBranches(ctx context.Context, prefix string) (map[string]*checkout.HeldError, error) {
	return checkout.OfUsers(ctx, r.git, refname.Branch(prefix), r.checkouts)
}

// guard guards the branch against checkouts other than the tree's own.
func (t *Tree) guard() checkout.Guard {
	s := t.Spec()
	left := func(commit string) string { return t.repo.refNames.Left(s.Key, commit) }
	return checkout.Guard{Git: t.repo.git, Ref: refname.Branch(s.Branch), Own: t.record().GitDir, Left: left, List: t.repo.checkouts}
}

// MoveBranch moves the branch to the last imported commit if an import had to leave it. It fails with a [*checkout.HeldError] while
// another checkout has the branch, and with ErrMoved if the user has moved it meanwhile.
func (t *Tree) MoveBranch(ctx context.Context) error {
	s := t.Spec()
	return t.repo.locked(ctx, s.Key, "move the branch to "+t.repo.refNames.Work(s.Key), func() error {
		refs, err := t.readRefs(ctx)
		if err != nil || s.Detached || refs.branch == "" || refs.work == "" || refs.branch == refs.work {
			return err
		}
		if err := t.guard().Check(ctx); err != nil {
			return err
		}
		if !refs.left {
			return fmt.Errorf("%w: branch %s is at %s; the commits of the run are at %s", ErrMoved, s.Branch, git.Short(refs.branch), git.Short(refs.work))
		}
		sp, err := t.readSpan(ctx, refs.work)
		if err != nil {
			return err
		}
		edits, err := t.tipEdits(ctx, sp, refs, t.record().Replaced)
		if err != nil {
			return err
		}
		return t.guard().MoveRefs(ctx, edits...)
	})
}
