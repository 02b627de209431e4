package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/merge"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Onto puts a branch's commits on a new base: it replays them or, if there is a merge among them, merges the base. It
// returns the new tip, and the new names by old name, nil after a merge, which keeps the commits. An error that wraps
// merge.ErrConflict says how a person resolves it. The span has no commit of the former bases, and a merge must not bring
// back those that the new base lacks.
func (o Options) Onto(
	ctx context.Context, base record.Base, branch string, s span.Span, former []string,
) (tip string, renamed map[string]string, err error) {
	for _, parents := range s.Parents {
		if len(parents) > 1 {
			tip, err = o.mergeOnto(ctx, base, branch, s.Tip, former)
			return tip, nil, err
		}
	}
	tip, renamed, err = o.Replay(ctx, base.Commit, s.Names(), s.Parents)
	if conflict, is := errors.AsType[*ConflictError](err); is {
		onto := git.Quote(base.Name)
		if lost, err := o.lost(ctx, base, s.Tip, former); err != nil {
			return "", nil, err
		} else if lost != "" {
			onto = "--onto " + onto + " " + git.Short(lost)
		}
		err = o.conflict("in "+conflict.Paths, "rebase "+onto+" "+git.Quote(branch))
	}
	return tip, renamed, err
}

func (o Options) conflict(where string, commands ...string) error {
	return &merge.ConflictError{Text: merge.ErrConflict.Error() + " " + where, Top: o.Top, Commands: commands}
}

// lost returns a former base of which the tip has commits that the base lacks; "" if there is none.
func (o Options) lost(ctx context.Context, base record.Base, tip string, former []string) (string, error) {
	spans := span.Reader{Git: o.Git}
	for _, commit := range former {
		if lost, err := spans.Lost(ctx, commit, base.Commit, tip); err != nil || lost {
			return commit, err
		}
	}
	return "", nil
}

// mergeOnto merges the branch with the new base.
func (o Options) mergeOnto(ctx context.Context, base record.Base, branch, tip string, former []string) (string, error) {
	if lost, err := o.lost(ctx, base, tip, former); err != nil {
		return "", err
	} else if lost != "" {
		return "", &merge.ConflictError{
			Text: fmt.Sprintf("%s: %s no longer contains %s, on which %s with its merge commits is built",
				merge.ErrConflict, base.Name, git.Short(lost), branch),
			Top: o.Top, Hopeless: true,
			Commands: []string{fmt.Sprintf("rebase --rebase-merges --onto %s %s %s", git.Quote(base.Name), git.Short(lost), git.Quote(branch))},
		}
	}
	inside, err := o.Git.Contains(ctx, tip, base.Commit)
	if err != nil || inside {
		return tip, err
	}
	tree, names, err := o.Git.MergeTree(ctx, base.Commit, tip)
	if err != nil {
		return "", err
	}
	if names != "" {
		return "", o.conflict("in "+names, "switch "+git.Quote(branch), "merge "+git.Quote(base.Name))
	}
	g, err := o.Git.WithIdent(ctx)
	if err != nil {
		return "", err
	}
	return g.CommitTree(ctx, tree, fmt.Sprintf("Merge %s into %s\n", branch, base.Name), base.Commit, tip)
}
