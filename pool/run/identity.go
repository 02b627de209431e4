package run

import (
	"context"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// IdentityOf is in whose name commits are made. Without an author it is the account that ralph has on the tracker, if any.
func IdentityOf(ctx context.Context, who worktree.Identity, t tracker.Tracker) (worktree.Identity, error) {
	account, ok := tracker.As[tracker.Committer](t)
	if who.Author.Email != "" || !ok {
		return who, nil
	}
	var err error
	who.Author.Name, who.Author.Email, err = account.Committer(ctx)
	return who, err
}

// CheckIdentity makes sure that commits can be made in the name and form that is asked for. Callers do so before an agent
// is paid. must: the agent's work is of no use without commits.
func (r *Runner) CheckIdentity(ctx context.Context, must bool) error {
	who, err := IdentityOf(ctx, r.c.Identity, r.c.Tracker)
	if err != nil {
		return err
	}
	return r.c.Repo.CheckIdentity(ctx, who, must && !r.spaces.Private())
}
