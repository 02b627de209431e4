// Package claim holds the leases that keep two ralphs off one issue, and what is known of an issue across machines. Its
// caller is package worktree.
//
// A claim is a git ref for each key, on the remote where there is one. Every change is a compare-and-swap on the commit
// the ref points to, so that of two claimants exactly one wins. The commit's message is one JSON document: the holder, if
// there is one, and the [Record] of the runs so far, which outlives every holder.
//
// Everything here is safe for concurrent use, by goroutines and by processes on any number of machines.
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

// Errors that callers act on.
var (
	// ErrTaken: somebody else holds the claim; see [*TakenError].
	ErrTaken = errors.New("issue is claimed")
	// ErrLost: the claim is not ours any more. Stop at once, write nothing outward.
	ErrLost = errors.New("claim is lost")
	// ErrVersion: a newer version of ralph wrote the claim.
	ErrVersion = errors.New("written by a newer version of ralph")
)

// errSwap is a compare-and-swap that found another value.
var errSwap = errors.New("claim has changed")

// refusedSwap is the errSwap of a remote that says why.
type refusedSwap struct{ error }

// Unwrap gives errSwap, and what the remote says.
func (r refusedSwap) Unwrap() []error { return []error{errSwap, r.error} }

// clockMargin is how far the clocks of two machines may differ. Another machine's claim counts as expired only this long
// after the time its holder wrote.
const clockMargin = time.Minute

// MaxTTL is the longest time that a claim is valid for. Another machine's claim that is to last twice as long counts as expired: its
// clock was wrong, or somebody has made it up, and the issue would wait for ever.
const MaxTTL = 24 * time.Hour

// maxTries bounds how often a claim that keeps changing is read again.
const maxTries = 5

// TakenError is the ErrTaken that names the holder.
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
	store *Store
	key   string
	ttl   time.Duration
	dead  string // the run that the claim was taken from, of a process of this host

	op chan struct{} // holds one element during a renewal or release: one at a time

	mu       sync.Mutex
	holder   Holder          // guarded by mu
	record   Record          // guarded by mu
	final    *Record         // guarded by mu; what Finish was to leave; nil: it was not called
	at       string          // guarded by mu; the commit that the ref is known to be at
	sent     map[string]bool // guarded by mu; commits that may have arrived although the answer was lost
	released bool            // guarded by mu
}

// Holder is what the claim says now.
func (c *Claim) Holder() Holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder
}

// Left is how long the claim is still valid without Renew, by the clock that all its machines share. It goes by the wall clock,
// which also runs while the machine sleeps.
func (c *Claim) Left() time.Duration { return c.Holder().Expires.Round(0).Sub(c.store.now().Round(0)) }

// Dead is the run of this host from which the claim was taken: its ralph has died or hangs, and what it has started may
// still run. It is empty when there was none.
func (c *Claim) Dead() string { return c.dead }

// Record is what is known of the runs. It is zero for an issue that was never worked, and without a claim (nil).
func (c *Claim) Record() Record {
	if c == nil {
		return Record{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record
}

// Renew extends the claim by its TTL. It fails with ErrLost, or wraps git.ErrRemote when the remote did not answer; the
// claim then stays ours until it expires.
func (c *Claim) Renew(ctx context.Context) error {
	if err := c.renew(ctx, nil); err != nil {
		return fmt.Errorf("renew claim %s: %w", c.key, err)
	}
	return nil
}

// SetRecord replaces the record, but for its mark, and renews the claim. When it fails other than with ErrLost, the ref may
// have the record or not, and every later renewal writes it.
func (c *Claim) SetRecord(ctx context.Context, r Record) error {
	if err := c.renew(ctx, &r); err != nil {
		return fmt.Errorf("record runs of %s: %w", c.key, err)
	}
	return nil
}

// renew renews the claim, with another record unless r is nil.
func (c *Claim) renew(ctx context.Context, r *Record) error {
	err := c.begin(ctx)
	if r != nil { // without its turn, for a later renewal
		c.setRecord(*r)
	}
	if err != nil {
		return err
	}
	defer c.end()
	return c.retry(ctx, func(at string) error {
		if c.isReleased() {
			return ErrLost
		}
		return c.take(ctx, at, c.Holder(), c.Record())
	})
}

// begin waits until no other renewal or release is on.
func (c *Claim) begin(ctx context.Context) error {
	select {
	case c.op <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Claim) end() { <-c.op }

// take swaps the ref from old to a new document in which h holds the claim. The other refs move with it.
func (c *Claim) take(ctx context.Context, old string, h Holder, r Record, also ...git.Edit) error {
	h.Expires, h.Until = c.store.now().Add(c.ttl).UTC().Round(0), c.store.up()+c.ttl
	commit, err := c.swap(ctx, old, document{Generation: h.Generation, Holder: &h, Record: r}, also...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holder, c.at = h, commit
	clear(c.sent)
	return nil
}

// swap moves the ref from old to a new document, or to no ref when that says nothing. Until the ref is at its commit, git gc may
// remove that: then it is written again.
func (c *Claim) swap(ctx context.Context, old string, d document, also ...git.Edit) (commit string, err error) {
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
		err = c.store.refs.swap(ctx, c.key, old, commit, also...)
		if err == nil || errors.Is(err, errSwap) || commit == "" || c.store.objects.Has(commit) {
			return commit, err
		}
	}
	return commit, err
}

// retry repeats a swap for as long as it fails only because an earlier swap of ours had arrived without an answer.
func (c *Claim) retry(ctx context.Context, swap func(at string) error) error {
	for range maxTries {
		c.mu.Lock()
		at := c.at
		c.mu.Unlock()
		err := swap(at)
		if !errors.Is(err, errSwap) {
			return err
		}
		if err := c.find(ctx); err != nil {
			return err
		}
	}
	return errSwap
}

// find looks where the ref is after a refused swap. It is still ours at a commit of ours whose answer was lost;
// everything else is ErrLost.
func (c *Claim) find(ctx context.Context) error {
	commit, _, err := c.store.refs.read(ctx, c.key)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if commit == "" || commit != c.at && !c.sent[commit] {
		return ErrLost
	}
	c.at = commit
	return nil
}

// setRecord replaces the record, but for its mark.
func (c *Claim) setRecord(r Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Mark = c.record.Mark
	c.record = r
}

func (c *Claim) isReleased() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.released
}
