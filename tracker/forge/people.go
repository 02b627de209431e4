package forge

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

const (
	rosterPages   = 10              // maximum number of pages read of a project's member list
	maxLookups    = 50              // maximum number of accounts to look up one by one for one issue
	trustLifetime = 5 * time.Minute // lifetime of a cached answer
)

// Account is a user of a forge. The zero Account stands for a deleted one.
type Account struct {
	ID   int64
	Name string
	Bot  bool // known without a request
}

// Roster is the project's list of members.
type Roster struct {
	Members  map[int64]tracker.Distrust // why each member may not direct ralph, or TrustedAccount
	Complete bool                       // the list has every member, so other accounts may not direct ralph
}

// ReadRoster reads at most ten pages of the project's member list. judge returns a member's ID, or 0 to leave it out. A
// list that is not readable gives an empty, incomplete roster.
func ReadRoster[T any](each func(visit func([]*T) bool) error, judge func(*T) (id int64, why tracker.Distrust)) (Roster, error) {
	r := Roster{Members: map[int64]tracker.Distrust{}, Complete: true}
	read := 0
	err := each(func(some []*T) bool {
		for _, m := range some {
			if id, why := judge(m); id > 0 {
				r.Members[id] = why
			}
		}
		read++
		r.Complete = read < rosterPages || len(some) < transport.PageSize
		return read < rosterPages
	})
	if transport.Status(err) == http.StatusForbidden || transport.Skippable(err) || transport.IsMalformed(err) {
		return Roster{}, nil
	}
	return r, err
}

// People decides who may direct ralph. It caches answers for a few minutes, and outsiders cannot raise its cost. It is safe
// for concurrent use. [NewProject] completes it.
type People struct {
	Bots []int64 // IDs of bots that may direct ralph
	// List reads the project's members. If the list is not readable, it returns an empty, incomplete roster.
	List func(ctx context.Context) (Roster, error)
	// Ask looks up one account.
	Ask func(ctx context.Context, a Account) (tracker.Distrust, error)
	// Confirm checks an account that the roster trusts; nil: the roster is sufficient.
	Confirm func(ctx context.Context, a Account) (tracker.Distrust, error)
	Now     func() time.Time
	Log     *slog.Logger

	listLock *semaphore.Weighted // one listing at a time
	mu       sync.Mutex
	verdicts map[int64]verdict // guarded by mu
	roster   Roster            // guarded by mu
	listedAt time.Time         // guarded by mu
}

type verdict struct {
	distrust tracker.Distrust
	at       time.Time
}

// Judge returns why an account may not direct ralph, or TrustedAccount.
func (p *People) Judge(ctx context.Context, a Account) (tracker.Distrust, error) {
	switch {
	case a.ID <= 0:
		return tracker.DeletedAccount, nil
	case slices.Contains(p.Bots, a.ID):
		return tracker.TrustedAccount, nil
	case a.Bot:
		return tracker.UnlistedBot, nil
	}
	return p.cachedVerdict(ctx, a, p.Ask)
}

// Approve returns nil if the account may direct ralph, otherwise a [tracker.UnapprovedError] of this kind about the label.
func (p *People) Approve(ctx context.Context, by Account, kind tracker.Approval, label string) error {
	why, err := p.Judge(ctx, by)
	if err != nil || why == tracker.TrustedAccount {
		return err
	}
	return &tracker.UnapprovedError{Kind: kind, Label: label, Account: by.Name, ID: by.ID, Why: why}
}

func (p *People) isFresh(at time.Time) bool {
	age := p.Now().Sub(at)
	return !at.IsZero() && age >= 0 && age < trustLifetime
}

func (p *People) cachedVerdict(ctx context.Context, a Account, ask func(context.Context, Account) (tracker.Distrust, error)) (tracker.Distrust, error) {
	p.mu.Lock()
	v, known := p.verdicts[a.ID]
	p.mu.Unlock()
	if known && p.isFresh(v.at) {
		return v.distrust, nil
	}
	why, err := ask(ctx, a)
	if err != nil {
		return why, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.verdicts[a.ID] = verdict{why, p.Now()}
	return why, nil
}

// Trusted reports, by ID, which accounts may direct ralph. It uses the roster. Only if that is incomplete, it looks up a
// limited number of missing accounts, in the given order; the rest are not trusted.
func (p *People) Trusted(ctx context.Context, accounts []Account) (map[int64]bool, error) {
	out := map[int64]bool{}
	var roster Roster
	lookups, skipped := 0, 0
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
			if roster, err = p.currentRoster(ctx); err != nil {
				return nil, fmt.Errorf("list who may write to the project: %w", err)
			}
		}
		why, listed := roster.Members[a.ID]
		switch {
		case listed && why == tracker.TrustedAccount && p.Confirm != nil:
			why, err = p.cachedVerdict(ctx, a, p.Confirm)
		case listed:
		case roster.Complete:
			continue
		case lookups == maxLookups:
			skipped++
			continue
		default:
			lookups++
			why, err = p.Judge(ctx, a)
		}
		if err != nil {
			return nil, err
		}
		out[a.ID] = why == tracker.TrustedAccount
	}
	if skipped > 0 {
		p.Log.Warn("too many accounts to ask about each; these are not trusted", "accounts", skipped)
	}
	return out, nil
}

// isStranger reports whether the roster alone shows that an account may not direct ralph.
func (p *People) isStranger(ctx context.Context, a Account) (bool, error) {
	if a.ID <= 0 || a.Bot || slices.Contains(p.Bots, a.ID) {
		return !slices.Contains(p.Bots, a.ID), nil
	}
	roster, err := p.currentRoster(ctx)
	if err != nil {
		return false, fmt.Errorf("list who may write to the project: %w", err)
	}
	why, listed := roster.Members[a.ID]
	return !listed && roster.Complete || listed && why != tracker.TrustedAccount, nil
}

// currentRoster returns the roster, which it reads at most once in trustLifetime. A published roster is never modified.
func (p *People) currentRoster(ctx context.Context) (Roster, error) {
	if err := p.listLock.Acquire(ctx, 1); err != nil {
		return Roster{}, context.Cause(ctx)
	}
	defer p.listLock.Release(1)
	p.mu.Lock()
	r, at := p.roster, p.listedAt
	p.mu.Unlock()
	if p.isFresh(at) {
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
	r.Complete = r.Complete && len(r.Members) > 0 // an empty list may mean missing permission
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roster, p.listedAt = r, now
	return r, nil
}
