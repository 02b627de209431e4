package run

import (
	"context"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// IdentityOf is the author of commits. Without a configured one it is ralph's account on the tracker, if any.
func IdentityOf(ctx context.Context, who worktree.Identity, t tracker.Tracker) (worktree.Identity, error) {
	account, ok := tracker.As[tracker.Committer](t)
	if who.Author.Email != "" || !ok {
		return who, nil
	}
	var err error
	who.Author.Name, who.Author.Email, err = account.Committer(ctx)
	return who, err
}

// CheckIdentity checks that commits can have the configured author, committer and signature. Callers check before an agent is paid.
// must means that work without commits is useless.
func (r *Runner) CheckIdentity(ctx context.Context, must bool) error {
	who, err := IdentityOf(ctx, r.c.Identity, r.c.Tracker)
	if err != nil {
		return err
	}
	return r.c.Repo.CheckIdentity(ctx, who, must && !r.spaces.Private())
}
