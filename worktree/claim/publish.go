package claim

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/worktree/git"
)

// errSlow ends a push that takes too long: renewals wait for it.
var errSlow = errors.New("it takes too long to push together with the claim")

// Publish moves a branch of the remote, replaces the record, except for its mark, and renews the claim, all in one
// transaction. So nobody who has lost the claim can move the branch, and the next holder knows what was published. It fails
// with ErrLost or like [git.Runner.Push]. The branch moves separately, right after a renewal, if the push takes longer than
// half of the remaining time, or if the remote cannot move several refs in one transaction.
func (c *Claim) Publish(ctx context.Context, r Record, branch git.Edit) error {
	return c.publish(ctx, r, false, branch)
}

// PublishAndFinish is like Publish and Finish in one transaction, if the remote can.
func (c *Claim) PublishAndFinish(ctx context.Context, r Record, branch git.Edit) error {
	r.Finished = true
	return c.publish(ctx, r, true, branch)
}

func (c *Claim) publish(ctx context.Context, r Record, finish bool, branch git.Edit) error {
	shortCtx, cancel := context.WithTimeoutCause(ctx, c.TimeLeft()/2, errSlow)
	err := c.tryToPublish(shortCtx, r, finish, branch)
	separately := errors.Is(err, git.ErrNotAtomic) || err != nil && ctx.Err() == nil && errors.Is(context.Cause(shortCtx), errSlow)
	cancel()
	if separately {
		firstRecord := c.Record()
		if r.Pending == nil && !finish { // the record of checked commits is valid only once the branch has them
			firstRecord = r
		}
		if err = c.renew(ctx, &firstRecord); err == nil {
			err = c.store.refs.push(ctx, branch)
		}
		if err == nil {
			err = c.tryToPublish(ctx, r, finish)
		}
	}
	if err != nil {
		return fmt.Errorf("with claim %s: %w", c.key, err)
	}
	return nil
}

// tryToPublish makes one attempt at the transaction. Without a branch it only changes the claim.
func (c *Claim) tryToPublish(ctx context.Context, r Record, finish bool, branch ...git.Edit) error {
	if err := c.lockOp(ctx); err != nil {
		return err
	}
	defer c.unlockOp()
	ctx, cancel := context.WithTimeoutCause(ctx, max(c.TimeLeft(), c.ttl/2), git.ErrRemote) // renewals wait meanwhile
	defer cancel()
	r.Mark = c.Record().Mark
	err := c.retry(ctx, func(at string) error {
		switch {
		case c.Released():
			return ErrLost
		case finish:
			_, err := c.swap(ctx, at, document{Generation: c.Holder().Generation, Record: r}, branch...)
			return err
		}
		return c.swapHolder(ctx, at, c.Holder(), r, branch...)
	})
	mayHaveArrived := ctx.Err() != nil || errors.Is(err, git.ErrUnavailable)
	switch {
	case err == nil && finish:
		c.setReleased()
	case err == nil, r.Pending == nil && !finish && mayHaveArrived:
		c.setRecord(r)
	}
	return err
}
