package clean

import (
	"context"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/span"
)

// lost returns the tip of a run that has succeeded, if neither its branch nor the base has its changes; "" if there is none. Removing
// the branch would remove ralph's refs to them.
func (c *cleaner) lost(ctx context.Context, b worktree.Branch) (string, error) {
	if b.Name == "" || !b.Merged || b.Ahead > 0 {
		return "", nil
	}
	runs, err := c.p.Journal.Find(ctx, journal.Query{Key: b.Key})
	if err != nil {
		return "", err
	}
	tip := journal.History(runs).LostTip(b.Tip)
	if tip == "" {
		return "", nil
	}
	missing, err := span.Missing(ctx, c.p.Repo.Git(), c.base.Commit, tip)
	if err != nil || !missing {
		return "", err
	}
	return tip, nil
}
