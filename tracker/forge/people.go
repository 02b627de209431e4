package forge

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ralph-pool/ralph/tracker"
)

const (
	// RosterPages is how many pages of a project's people are read.
	RosterPages = 10
	maxAsked    = 50              // accounts that are asked about one by one for one issue
	trustFor    = 5 * time.Minute // how long an answer counts
)

// Account is a user of a forge. The zero Account is a deleted one.
type Account struct {
	ID   int64
	Name string
	Bot  bool // as far as is known without asking
}

// Roster is the project's own list of people.
type Roster struct {
	Members  map[int64]tracker.Distrust // why each may not direct ralph; TrustedAccount when it may
	Complete bool                       // nobody is missing, so an account that is not listed may not
}

// People decides who may direct ralph. It caches answers for a few minutes, is safe for concurrent use, and its price
// cannot be raised by outsiders. [NewProject] completes it.
type People struct {
	Bots []int64 // ids of bots that may
	// List reads the project's list. A list that may not be read is an empty, incomplete roster.
	List func(ctx context.Context) (Roster, error)
	// Ask judges one account.
	Ask func(ctx context.Context, a Account) (tracker.Distrust, error)
	// Confirm judges an account that the list allows; nil: the list is enough.
	Confirm func(ctx context.Context, a Account) (tracker.Distrust, error)
	Now     func() time.Time
	Log     *slog.Logger

	listing *semaphore.Weighted // one listing at a time
	mu      sync.Mutex
	known   map[int64]verdict // guarded by mu
	roster  Roster            // guarded by mu
	listed  time.Time         // guarded by mu
}

type verdict struct {
	why tracker.Distrust
	at  time.Time
}

// Judge says why an account may not direct ralph, or TrustedAccount.
func (p *People) Judge(ctx context.Context, a Account) (tracker.Distrust, error) {
	switch {
	case a.ID <= 0:
		return tracker.DeletedAccount, nil
	case slices.Contains(p.Bots, a.ID):
		return tracker.TrustedAccount, nil
	case a.Bot:
		return tracker.UnlistedBot, nil
	}
	return p.cached(ctx, a, p.Ask)
}

// Approve is nil when the account may direct ralph, else an error of that kind about the label.
func (p *People) Approve(ctx context.Context, by Account, kind tracker.Approval, label string) error {
	why, err := p.Judge(ctx, by)
	if err != nil || why == tracker.TrustedAccount {
		return err
	}
	return &tracker.UnapprovedError{Kind: kind, Label: label, Account: by.Name, ID: by.ID, Why: why}
}

func (p *People) fresh(at time.Time) bool {
	age := p.Now().Sub(at)
	return !at.IsZero() && age >= 0 && age < trustFor
}

func (p *People) cached(ctx context.Context, a Account, ask func(context.Context, Account) (tracker.Distrust, error)) (tracker.Distrust, error) {
	p.mu.Lock()
	v, known := p.known[a.ID]
	p.mu.Unlock()
	if known && p.fresh(v.at) {
		return v.why, nil
	}
	why, err := ask(ctx, a)
	if err != nil {
		return why, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[a.ID] = verdict{why, p.Now()}
	return why, nil
}

// Trusted judges many accounts, the first ones first. The project's people are listed; only where the list cannot be
// read to its end some accounts are asked about one by one, and the others are not trusted. The answer is by id.
func (p *People) Trusted(ctx context.Context, accounts []Account) (map[int64]bool, error) {
	out := map[int64]bool{}
	var roster Roster
	asked, beyond := 0, 0
	for _, a := range accounts {
		if _, judged := out[a.ID]; judged || a.ID <= 0 {
			continue
		}
		out[a.ID] = slices.Contains(p.Bots, a.ID)
		if out[a.ID] || a.Bot {
			continue
		}
		var err error
		if roster.Members == nil {
			if roster, err = p.list(ctx); err != nil {
				return nil, fmt.Errorf("list who may write to the project: %w", err)
			}
		}
		why, listed := roster.Members[a.ID]
		switch {
		case listed && why == tracker.TrustedAccount && p.Confirm != nil:
			why, err = p.cached(ctx, a, p.Confirm)
		case listed:
		case roster.Complete:
			continue
		case asked == maxAsked:
			beyond++
			continue
		default:
			asked++
			why, err = p.Judge(ctx, a)
		}
		if err != nil {
			return nil, err
		}
		out[a.ID] = why == tracker.TrustedAccount
	}
	if beyond > 0 {
		p.Log.Warn("too many accounts to ask about each; these are not trusted", "accounts", beyond)
	}
	return out, nil
}

// stranger reports an account of which the list alone says that it may not direct ralph.
func (p *People) stranger(ctx context.Context, a Account) (bool, error) {
	if a.ID <= 0 || a.Bot || slices.Contains(p.Bots, a.ID) {
		return !slices.Contains(p.Bots, a.ID), nil
	}
	roster, err := p.list(ctx)
	if err != nil {
		return false, fmt.Errorf("list who may write to the project: %w", err)
	}
	why, listed := roster.Members[a.ID]
	return !listed && roster.Complete || listed && why != tracker.TrustedAccount, nil
}

// list reads the roster, at most once in a few minutes. A published roster is not changed.
func (p *People) list(ctx context.Context) (Roster, error) {
	if err := p.listing.Acquire(ctx, 1); err != nil {
		return Roster{}, context.Cause(ctx)
	}
	defer p.listing.Release(1)
	p.mu.Lock()
	r, at := p.roster, p.listed
	p.mu.Unlock()
	if p.fresh(at) {
		return r, nil
	}
	now := p.Now()
	r, err := p.List(ctx)
	if err != nil {
		return Roster{}, err
	}
	if r.Members == nil {
		r.Members = map[int64]tracker.Distrust{}
	}
	r.Complete = r.Complete && len(r.Members) > 0 // an empty list proves nothing
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roster, p.listed = r, now
	return r, nil
}
