// Package claim implements claims: leases that keep two ralphs off one issue, and the record of the runs that all
// machines share. Its caller is package worktree.
//
// A claim is one git ref per key, on the remote if there is one. Every change is a compare-and-swap on the ref's commit, so
// exactly one of two claimants wins. The commit's message is a JSON document: the holder, if any, and the [Record] of the
// runs so far, which outlives the holder.
//
// The package is safe for concurrent use, by goroutines and by processes on any number of machines.
package claim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Errors for callers to check.
var (
	// ErrTaken means that somebody else holds the claim; see [*TakenError].
	ErrTaken = errors.New("issue is claimed")
	// ErrLost means that the claim was lost. Stop at once, and publish nothing.
	ErrLost = errors.New("claim is lost")
	// ErrVersion means that a newer version of ralph wrote the claim.
	ErrVersion = errors.New("written by a newer version of ralph")
)

// errRefChanged means that a compare-and-swap found another value.
var errRefChanged = errors.New("claim has changed")

// refChangedError is an errRefChanged with the remote's reason.
type refChangedError struct{ error }

// Unwrap returns errRefChanged and the remote's error.
func (r refChangedError) Unwrap() []error { return []error{errRefChanged, r.error} }

// clockMargin is the clock difference allowed between two machines. Another machine's claim counts as expired only this
// long after its expiry time.
const clockMargin = time.Minute

// MaxTTL is the longest TTL of a claim. Another machine's claim with more than twice this time left counts as expired: its
// clock was wrong, or the claim is forged, and the issue would wait forever.
const MaxTTL = 24 * time.Hour

// maxTries limits how often a claim that keeps changing is read again.
const maxTries = 5

// TakenError is an ErrTaken that names the holder.
type TakenError struct {
	Key    string
	Holder Holder
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("issue %s is claimed by %s on %s until %s", e.Key, git.Printable(e.Holder.Owner),
		git.Printable(e.Holder.Host), e.Holder.Expires.UTC().Format(time.RFC3339))
}

// Unwrap makes errors.Is(err, ErrTaken) true.
func (e *TakenError) Unwrap() error { return ErrTaken }

// Claim is a held claim. It belongs to one run.
type Claim struct {
	store   *Store
	key     string
	ttl     time.Duration
	deadRun string // run of this host from which the claim was taken over

	opLock chan struct{} // semaphore: only one renewal or release at a time

	mu       sync.Mutex
	holder   Holder          // guarded by mu
	record   Record          // guarded by mu
	final    *Record         // guarded by mu; the record that End was to leave; nil: End was not called
	commit   string          // guarded by mu; the last known commit of the ref
	sent     map[string]bool // guarded by mu; commits that may have arrived although the remote's answer was lost
	released bool            // guarded by mu
}

// Holder returns the current holder entry of the claim.
func (c *Claim) Holder() Holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder
}

// TimeLeft returns the time until the claim expires without Renew, by the clock that all its machines share. It uses the wall
// clock, which also runs while the machine sleeps.
func (c *Claim) TimeLeft() time.Duration {
	return c.Holder().Expires.Round(0).Sub(c.store.now().Round(0))
}

// TakenOverFrom returns the run of this host from which the claim was taken over, or "". The ralph of that run has died or hangs,
// and processes of it may still be running.
func (c *Claim) TakenOverFrom() string { return c.deadRun }

// Record returns the record of the runs. It is zero for an issue that was never worked, and for a nil Claim.
func (c *Claim) Record() Record {
	if c == nil {
		return Record{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record
}

// Renew extends the claim by its TTL. It fails with ErrLost, or wraps git.ErrRemote if the remote does not answer; then the
// claim stays valid until it expires.
func (c *Claim) Renew(ctx context.Context) error {
	if err := c.renew(ctx, nil); err != nil {
		return fmt.Errorf("renew claim %s: %w", c.key, err)
	}
	return nil
}

// SetRecord replaces the record, except for its mark, and renews the claim. After an error other than ErrLost, the ref may
// or may not have the record; every later renewal writes it again.
func (c *Claim) SetRecord(ctx context.Context, r Record) error {
	if err := c.renew(ctx, &r); err != nil {
		return fmt.Errorf("record runs of %s: %w", c.key, err)
	}
	return nil
}

// renew renews the claim. It replaces the record unless r is nil.
func (c *Claim) renew(ctx context.Context, r *Record) error {
	err := c.lockOp(ctx)
	if r != nil { // set also if lockOp fails, for a later renewal
		c.setRecord(*r)
	}
	if err != nil {
		return err
	}
	defer c.unlockOp()
	return c.retry(ctx, func(at string) error {
		if c.Released() {
			return ErrLost
		}
		return c.swapHolder(ctx, at, c.Holder(), c.Record())
	})
}

// lockOp waits until no other renewal or release is running.
func (c *Claim) lockOp(ctx context.Context) error {
	select {
	case c.opLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Claim) unlockOp() { <-c.opLock }

// swapHolder swaps the ref from old to a new document with h as the holder. The other refs move in the same transaction.
func (c *Claim) swapHolder(ctx context.Context, old string, h Holder, r Record, otherEdits ...git.Edit) error {
	h.Expires, h.ExpiresUptime = c.store.now().Add(c.ttl).UTC().Round(0), c.store.uptime()+c.ttl
	commit, err := c.swap(ctx, old, document{Generation: h.Generation, Holder: &h, Record: r}, otherEdits...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holder, c.commit = h, commit
	clear(c.sent)
	return nil
}

// swap moves the ref from old to a new document, or deletes it if the document is empty. git gc may remove the new commit
// before the ref points to it; then swap writes it again.
func (c *Claim) swap(ctx context.Context, old string, d document, otherEdits ...git.Edit) (commit string, err error) {
	for range maxTries {
		if !d.empty() {
			commit, err = c.store.write(d)
			if errors.Is(err, fs.ErrNotExist) { // git gc removes empty folders, too
				continue
			}
			if err != nil {
				return "", err
			}
			c.mu.Lock()
			c.sent[commit] = true // the answer may be lost
			c.mu.Unlock()
		}
		err = c.store.refs.swap(ctx, c.key, old, commit, otherEdits...)
		if err == nil || errors.Is(err, errRefChanged) || commit == "" || c.store.objects.Has(commit) {
			return commit, err
		}
	}
	return commit, err
}

// retry repeats a swap while it fails only because an earlier swap of this claim arrived without an answer.
func (c *Claim) retry(ctx context.Context, swap func(at string) error) error {
	for range maxTries {
		c.mu.Lock()
		at := c.commit
		c.mu.Unlock()
		err := swap(at)
		if !errors.Is(err, errRefChanged) {
			return err
		}
		if err := c.checkRef(ctx); err != nil {
			return err
		}
	}
	return errRefChanged
}

// checkRef reads the ref after a refused swap. The claim is still held if the ref is at one of its own commits whose answer
// was lost. Otherwise it fails with ErrLost.
func (c *Claim) checkRef(ctx context.Context) error {
	commit, _, err := c.store.refs.read(ctx, c.key)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if commit == "" || commit != c.commit && !c.sent[commit] {
		return ErrLost
	}
	c.commit = commit
	return nil
}

// setRecord replaces the record, except for its mark.
func (c *Claim) setRecord(r Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Mark = c.record.Mark
	c.record = r
}

// Released reports whether the claim was given up, or was found to be lost then.
func (c *Claim) Released() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.released
}

func (c *Claim) setReleased() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = true
}
