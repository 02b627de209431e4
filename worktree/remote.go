package worktree

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/note"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// Remote is the name of the remote that holds claims and gets branches; empty when there is none.
func (r *Repo) Remote() string { return r.opts.Remote }

// Notes are the notes on commits, which the remote shares.
func (r *Repo) Notes() note.Store {
	return note.Store{Git: r.git, Objects: r.objects, Talk: r.remote.Talk, Remote: r.opts.Remote}
}

// RemoteTips are where branches are on the remote, by name, with their commits fetched. A branch that the remote lacks is left out.
func (r *Repo) RemoteTips(ctx context.Context, branches ...string) (map[string]string, error) {
	return r.remote.Tips(ctx, branches...)
}

// RemoteBranches are where the remote's branches are whose names begin with the prefix, by their refs.
func (r *Repo) RemoteBranches(ctx context.Context, prefix string) (map[string]string, error) {
	return r.remote.Branches(ctx, prefix)
}

// Push pushes exactly tip to the branch on the remote, with a lease on the value that was there when the tree was
// added (or last pushed). With a claim, its record becomes r in the same step; see [claim.Claim.Publish]. It fails with ErrMoved
// when somebody else moved the branch and with ErrDeclined when the remote refuses, such as by a hook or a protected branch, and
// wraps ErrRemote when the remote cannot be reached. Pushing what is there already is not an error.
func (t *Tree) Push(ctx context.Context, tip string, c *Claim, r ClaimRecord) (err error) {
	rec := t.record()
	move := git.Edit{Ref: refname.Branch(rec.Spec.Branch), Old: rec.Lease, New: tip}
	switch {
	case c != nil && move.Old == tip: // others may have added to it since
		err = c.SetRecord(ctx, r)
	case c != nil:
		err = c.Publish(ctx, r, move)
	case move.Old == tip:
		return nil
	default:
		err = t.repo.remote.Push(ctx, move)
	}
	if err != nil {
		return fmt.Errorf("push %s: %w", rec.Spec.Branch, err)
	}
	return t.update(func(rec *record.Record) { rec.Lease = tip })
}
