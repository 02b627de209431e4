package publish

import (
	"context"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Author returns the identity for commits. Without a configured author it uses ralph's account on the tracker, if there is
// one.
func Author(ctx context.Context, who worktree.Identity, t tracker.Tracker) (worktree.Identity, error) {
	account, ok := tracker.As[tracker.Committer](t)
	if who.Author.Email != "" || !ok {
		return who, nil
	}
	var err error
	who.Author.Name, who.Author.Email, err = account.Committer(ctx)
	return who, err
}
