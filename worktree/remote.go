package worktree

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/note"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Remote returns the name of the remote for claims and pushes; empty if there is none.
func (r *Repo) Remote() string { return r.opts.Remote }

// Notes returns the store of notes on commits, which is shared through the remote.
func (r *Repo) Notes() note.Store {
	return note.Store{Git: r.git, Objects: r.objects, RemoteGit: r.remote.RemoteGit, Remote: r.opts.Remote}
}

// RemoteTips fetches the tips of branches on the remote and returns them by branch name, without missing branches.
func (r *Repo) RemoteTips(ctx context.Context, branches ...string) (map[string]string, error) {
	return r.remote.Tips(ctx, branches...)
}

// RemoteBranches returns the tips of the remote's branches whose names begin with prefix, by ref.
func (r *Repo) RemoteBranches(ctx context.Context, prefix string) (map[string]string, error) {
	return r.remote.Branches(ctx, prefix)
}

// Push pushes exactly tip to the branch on the remote, if the branch has the value that it had when the tree was added or last
// pushed. With a claim, its record becomes r in the same transaction; see [claim.Claim.Publish]. With finish, that also finishes
// the claim. Push fails with ErrMoved if somebody else has moved the branch, with ErrDeclined if the remote refuses, for example
// because of a hook, and wraps ErrRemote if the remote cannot be reached. Pushing the same tip again is not an error.
func (t *Tree) Push(ctx context.Context, tip string, c *Claim, r ClaimRecord, finish bool) (err error) {
	rec := t.record()
	move := git.Edit{Ref: refname.Branch(rec.Spec.Branch), Old: rec.Lease, New: tip}
	switch there := move.Old == tip; { // leave a branch that is there: others may have added commits since
	case c != nil && there && finish:
		err = c.Finish(ctx, r)
	case c != nil && there:
		err = c.SetRecord(ctx, r)
	case c != nil && finish:
		err = c.PublishAndFinish(ctx, r, move)
	case c != nil:
		err = c.Publish(ctx, r, move)
	case there:
		return nil
	default:
		err = t.repo.remote.Push(ctx, move)
	}
	if err != nil {
		return fmt.Errorf("push %s: %w", rec.Spec.Branch, err)
	}
	return t.updateRecord(func(rec *record.Record) { rec.Lease = tip })
}
