package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Guard keeps the branch of a run from being moved while another checkout has it.
type Guard struct {
	Git  git.Runner
	Ref  string                                    // the branch
	Own  string                                    // git directory of the run's own checkout
	Left func(commit string) string                // the ref that marks the branch as left at a commit
	List func(context.Context) ([]Checkout, error) // of the repository
}

// Check fails with a [*HeldError] if another checkout has the branch. Usually no file names the branch, and no git process is
// started: List is not called.
func (g Guard) Check(ctx context.Context) error {
	theirs := func(gitDir string) bool {
		return gitDir != g.Own && mayHave(gitDir, func(have string) bool { return have == g.Ref })
	}
	if g.Git.PlainRefs() && !slices.ContainsFunc(append(linkedDirs(g.Git), g.Git.Common()), theirs) {
		return nil
	}
	all, err := g.List(ctx)
	for _, c := range all {
		if (c.GitDir == "" || c.GitDir != g.Own) && c.Has(g.Ref) {
			return c.Held(g.Ref)
		}
	}
	return err
}

// MoveRefs is git's, after a Check. If a user's rebase or bisection of the branch has begun meanwhile, it puts the branch back and
// marks it as left: the operation would put it back at its end, or refuse to end.
func (g Guard) MoveRefs(ctx context.Context, edits ...git.Edit) error {
	if err := g.Git.MoveRefs(ctx, edits...); err != nil {
		return err
	}
	at := slices.IndexFunc(edits, func(e git.Edit) bool { return e.Ref == g.Ref && e.Old != "" && e.New != "" })
	held := (*HeldError)(nil)
	if at < 0 || !errors.As(g.Check(ctx), &held) || held.Operation == "" {
		return nil
	}
	e := edits[at]
	err := g.Git.MoveRefs(ctx, git.Edit{Ref: e.Ref, New: e.Old, Old: e.New}, git.Edit{Ref: g.Left(e.Old), New: e.Old, Any: true})
	if err != nil && !errors.Is(err, git.ErrMoved) { // otherwise the operation has ended
		return fmt.Errorf("leave the branch to a %s in %s: %w", held.Operation, held.Dir, err)
	}
	return nil
}
