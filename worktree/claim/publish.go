package claim

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/git"
)

// errSlow ends a push for which renewals cannot wait.
var errSlow = errors.New("it takes too long for one step with the claim")

// Publish moves a branch of the remote, replaces the record, but for its mark, and renews the claim: all in one step, or
// nothing. So nobody who has lost the claim moves the branch, and whoever has the claim next knows what is published. It fails with
// ErrLost or as [git.Runner.Push] does; the record is then the old one. Only a branch that takes longer than half of the claim's
// life, and one on a remote that moves refs one after the other, moves before the claim.
func (c *Claim) Publish(ctx context.Context, r Record, branch git.Edit) error {
	soon, cancel := context.WithTimeoutCause(ctx, c.Left()/2, errSlow)
	err := c.publish(soon, r, branch)
	slow := ctx.Err() == nil && errors.Is(context.Cause(soon), errSlow)
	cancel()
	if err != nil && slow {
		if err = c.renew(ctx, nil); err == nil {
			err = c.store.refs.push(ctx, branch)
		}
		if err == nil {
			err = c.publish(ctx, r, branch)
		}
	}
	if err != nil {
		return fmt.Errorf("with claim %s: %w", c.key, err)
	}
	return nil
}

func (c *Claim) publish(ctx context.Context, r Record, branch git.Edit) error {
	c.op.Lock()
	defer c.op.Unlock()
	r.Mark = c.Record().Mark
	err := c.retry(ctx, func(at string) error {
		if c.isReleased() {
			return ErrLost
		}
		return c.take(ctx, at, c.Holder(), r, branch)
	})
	if err == nil {
		c.setRecord(r)
	}
	return err
}
