package claim

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Finish gives the claim up and leaves the record, marked as finished. It does nothing for a released claim, and fails with
// ErrLost for a lost one.
func (c *Claim) Finish(ctx context.Context, r Record) error {
	r.Finished = true
	return c.End(ctx, r)
}

// End gives the claim up and leaves the record for the next holder. It does nothing for a released claim, and fails with
// ErrLost for a lost one.
func (c *Claim) End(ctx context.Context, r Record) error {
	c.mu.Lock()
	r.Mark = c.record.Mark
	c.final = &r
	c.mu.Unlock()
	if err := c.giveUp(ctx, document{Record: r}); err != nil {
		return fmt.Errorf("end claim %s: %w", c.key, err)
	}
	return nil
}

// Release gives the claim up and leaves the present record, or the one of an End that failed: the remote's answer may have
// been lost. Releasing a lost or released claim is not an error.
func (c *Claim) Release(ctx context.Context) error {
	c.mu.Lock()
	r := c.record
	if c.final != nil {
		r = *c.final
	}
	c.mu.Unlock()
	return c.release(ctx, r)
}

func (c *Claim) release(ctx context.Context, r Record) error {
	err := c.giveUp(ctx, document{Record: r})
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("release claim %s: %w", c.key, err)
	}
	return nil
}

// Reserve gives the claim up so that only the same run can take it within ttl. A claim with pending steps is released
// instead, because anybody may do those steps. Leaving a lost or released claim is not an error.
func (c *Claim) Reserve(ctx context.Context, run string, ttl time.Duration) error {
	h := c.Holder()
	h.Run, h.PID, h.Started, h.Expires = run, 0, endedStart(bootOf(h.Started)), c.store.now().Add(ttl).UTC().Round(0)
	var err error
	if r := c.Record(); r.Pending != nil {
		err = c.release(ctx, r)
	} else if err = c.giveUp(ctx, document{Holder: &h, Record: r}); errors.Is(err, ErrLost) {
		return nil
	}
	if err != nil {
		// The file tells other processes on this host that the run waits, and this one that it may continue it.
		return errors.Join(fmt.Errorf("leave claim %s: %w", c.key, err), c.store.recordWait(run, h.Expires))
	}
	return nil
}

// giveBackTimeout limits giveBack.
const giveBackTimeout = 5 * time.Second

// giveBack gives a claim up that may have been taken although the caller stopped waiting for the answer. A run of this
// machine that waited before gets the claim again. A run of another machine had let it expire, so nothing here can continue
// it.
func (c *Claim) giveBack(ctx context.Context, h, previousHolder Holder) error {
	ctx, cancel := context.WithTimeout(ctx, giveBackTimeout)
	defer cancel()
	c.mu.Lock()
	c.holder = h
	c.mu.Unlock()
	switch err := c.checkRef(ctx); {
	case errors.Is(err, ErrLost):
		return nil // the claim was not taken
	case err != nil:
		return err
	case previousHolder.Run == "" || !c.store.isOfThisMachine(previousHolder):
		return c.Release(ctx)
	}
	return c.Reserve(ctx, previousHolder.Run, max(c.ttl, previousHolder.Expires.Sub(c.store.now())))
}

// giveUp swaps the claim for the document, or deletes the ref if the document is empty.
func (c *Claim) giveUp(ctx context.Context, d document) error {
	d.Generation = c.Holder().Generation
	if err := c.lockOp(ctx); err != nil {
		return err
	}
	defer c.unlockOp()
	if c.Released() {
		return nil
	}
	err := c.retry(ctx, func(at string) error {
		_, err := c.swap(ctx, at, d)
		return err
	})
	if err == nil || errors.Is(err, ErrLost) {
		c.setReleased()
	}
	return err
}
