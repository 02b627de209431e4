package worktree

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// clockMargin is how far the clocks of two machines may differ: another machine's claim counts as expired only this
// long after the time its holder wrote.
const clockMargin = time.Minute

// claimTries bounds how often a claim that changes under our eyes is looked at again.
const claimTries = 5

// Holder is who holds a claim.
type Holder struct {
	Owner      string    `json:"owner"` // unique id of the ralph process's sweep or run
	Host       string    `json:"host"`
	PID        int       `json:"pid"`
	Started    string    `json:"started"` // start time of that process, so that a reused PID is not mistaken for it
	Run        string    `json:"run"`
	Generation int       `json:"generation"` // fencing number; grows with every take-over
	Expires    time.Time `json:"expires"`
	Hash       string    `json:"hash"` // of the frozen issue
}

// TakenError is the ErrTaken that says who.
type TakenError struct {
	Key    string
	Holder Holder
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("issue %s is claimed by %s on %s until %s", e.Key, printable(e.Holder.Owner),
		printable(e.Holder.Host), e.Holder.Expires.UTC().Format(time.RFC3339))
}

// Unwrap makes errors.Is(err, ErrTaken) true.
func (e *TakenError) Unwrap() error { return ErrTaken }

// Claim is a held claim. It belongs to one run. It is safe for concurrent use.
type Claim struct {
	repo *Repo
	key  string
	life time.Duration

	op sync.Mutex // one renewal or release at a time

	mu       sync.Mutex
	holder   Holder          // guarded by mu
	at       string          // guarded by mu; the claim commit the ref is known to be at
	sent     map[string]bool // guarded by mu; commits that may have arrived although the answer was lost
	released bool            // guarded by mu
	before   string          // guarded by mu; the commit of the Done that the claim replaced
	done     Done            // guarded by mu; what it says
	decided  *Decided        // guarded by mu; what the claim says of its run's end
}

// claimStore is where the claim refs are: in the local repository or on a remote.
type claimStore interface {
	// swap moves the key's ref from exactly old to new; an empty one means that there is no ref. errSwap says that the
	// ref was not at old. Any other error leaves open whether the ref has moved.
	swap(ctx context.Context, key, old, new string) error
	// read returns the commit the key's ref is at and its message; an empty commit means that there is no ref.
	read(ctx context.Context, key string) (commit, message string, err error)
	// list returns the messages of all claims by key.
	list(ctx context.Context) (map[string]string, error)
}

// errSwap is a compare-and-swap that found another value.
var errSwap = errors.New("claim has changed")

// Claim takes the issue: compare-and-swap from "no claim", from an expired one, or from one of this host whose process
// is gone. It fails with *TakenError, or wraps ErrRemote. life is how long it is valid without Renew; Holder's Host,
// PID, Started, Generation and Expires are filled in here.
func (r *Repo) Claim(ctx context.Context, key string, h Holder, life time.Duration) (*Claim, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	c := &Claim{repo: r, key: key, life: life, sent: map[string]bool{}}
	h.Host, h.PID, h.Started = r.self.host, r.self.pid, r.self.started
	at := ""
	h.Generation = 1
	for range claimTries {
		err := c.take(ctx, at, h)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, errSwap) {
			return nil, fmt.Errorf("claim %s: %w", key, err)
		}
		commit, message, err := r.claims.read(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", key, err)
		}
		at, h.Generation = commit, 1
		c.before, c.done, c.decided = "", Done{}, nil
		if commit == "" {
			continue // it was released meanwhile
		}
		if done, ok := decodeDone(message); ok {
			c.before, c.done, h.Generation = commit, done, done.Generation+1
			continue
		}
		found, err := decodeClaim(message)
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", key, unreadable(key, err))
		}
		held := found.Holder
		// A claim of this very run is an earlier try of ours whose answer was lost.
		ours := held.Run == h.Run && held.Owner == h.Owner && r.self.is(held) || left(held) && held.Run == h.Run
		if !ours && !r.gone(held) {
			return nil, &TakenError{Key: key, Holder: held}
		}
		if c.before, c.done, err = r.doneAt(ctx, found.Before); err != nil {
			return nil, fmt.Errorf("claim %s: %w", key, err)
		}
		c.decided, h.Generation = found.Decided, held.Generation+1
	}
	return nil, fmt.Errorf("claim %s: %w", key, &TakenError{Key: key, Holder: Holder{Owner: "several others at once"}})
}

func unreadable(key string, err error) error {
	return fmt.Errorf("%s was not written by this version of ralph (%w); if no other ralph is at work, delete it with: git update-ref -d %s",
		claimRef(key), err, claimRef(key))
}

// take swaps the ref from old to a new claim commit for h.
func (c *Claim) take(ctx context.Context, old string, h Holder) error {
	h.Expires = c.repo.now().Add(c.life).UTC().Round(0)
	commit, err := c.repo.claimCommit(c.message(h))
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.sent[commit] = true
	c.mu.Unlock()
	if err := c.repo.claims.swap(ctx, c.key, old, commit); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holder, c.at = h, commit
	clear(c.sent)
	return nil
}

// message is what the claim says when h holds it.
func (c *Claim) message(h Holder) claimMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return claimMessage{Holder: h, Before: c.before, Decided: c.decided}
}

// Holder is what the claim says now.
func (c *Claim) Holder() Holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder
}

// Renew extends the claim by its life. It fails with ErrLost, or wraps ErrRemote when nothing is known; the claim then
// stays ours until it expires.
func (c *Claim) Renew(ctx context.Context) error {
	c.op.Lock()
	defer c.op.Unlock()
	for range claimTries {
		c.mu.Lock()
		at, h, released := c.at, c.holder, c.released
		c.mu.Unlock()
		if released {
			return fmt.Errorf("renew claim %s: %w", c.key, ErrLost)
		}
		err := c.take(ctx, at, h)
		if !errors.Is(err, errSwap) {
			if err != nil {
				return fmt.Errorf("renew claim %s: %w", c.key, err)
			}
			return nil
		}
		if err := c.find(ctx); err != nil {
			return fmt.Errorf("renew claim %s: %w", c.key, err)
		}
	}
	return fmt.Errorf("renew claim %s: %w", c.key, errSwap)
}

// find looks where the ref is after a refused swap. It is still ours when it is at a commit of ours whose answer was
// lost on the way; all else is ErrLost.
func (c *Claim) find(ctx context.Context) error {
	commit, _, err := c.repo.claims.read(ctx, c.key)
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

// ClaimState is a claim as others see it.
type ClaimState struct {
	Holder  Holder
	Gone    bool
	Decided bool // the run has come to its end, see Decided
}

// Claims lists all claims by key, with whether the holder is known to be gone (expired, or its process on this host
// has died), and the issues that nobody holds because they are done. A claim that cannot be read is listed with an
// empty Holder that is not gone.
func (r *Repo) Claims(ctx context.Context) (held map[string]ClaimState, done map[string]Done, err error) {
	messages, err := r.claims.list(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list claims: %w", err)
	}
	held, done = map[string]ClaimState{}, map[string]Done{}
	for key, message := range messages {
		if checkKey(key) != nil {
			continue
		}
		if d, ok := decodeDone(message); ok {
			done[key] = d
			continue
		}
		m, err := decodeClaim(message)
		held[key] = ClaimState{Holder: m.Holder, Gone: err == nil && r.gone(m.Holder), Decided: m.Decided != nil}
	}
	return held, done, nil
}

// left reports a claim that no process holds: its run waits to be taken up again.
func left(h Holder) bool { return h.PID == 0 }

// gone reports whether the holder is known not to work any more.
func (r *Repo) gone(h Holder) bool {
	if h.Host == r.self.host && !left(h) {
		return !r.alive(h.PID, h.Started) || r.now().After(h.Expires)
	}
	return r.now().After(h.Expires.Add(clockMargin))
}
