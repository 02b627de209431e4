package parking

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Lot tracks the unavailable agents and the number of running runs. The zero Lot is ready for Turns; runs can enter once
// SetMost was called. It is safe for concurrent use.
type Lot struct {
	// Slowed is called when fewer runs may begin, with PID and Process unset; may be nil.
	Slowed func(Slow)

	mu      sync.Mutex
	parked  map[agents.Choice]journal.Parked // guarded by mu
	paces   map[string]Pace                  // guarded by mu; by agent name
	maxRuns int                              // guarded by mu; maximum number of runs at a time
	busy    int                              // guarded by mu; number of running runs
}

// Load replaces the known agents by the list, and by agents without a login. Other agents that wait for a person are tried
// again.
func (l *Lot) Load(list []journal.Parked, noLogin []agents.Choice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parked = nil
	for _, p := range list {
		l.park(p)
	}
	for _, c := range noLogin {
		l.park(journal.Parked{Agent: c.Agent, Model: c.Model, Class: agents.Auth})
	}
}

// Park adds agents that runs elsewhere found unavailable. Entries that last longer, or until a person acts, stay.
func (l *Lot) Park(list []journal.Parked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range list {
		if old, ok := l.parked[p.Choice()]; !ok || !old.Until.IsZero() && old.Until.Before(p.Until) {
			l.park(p)
		}
	}
}

// maxRunAge is the maximum age of runs that are read for unavailable agents: reading all runs takes long.
const maxRunAge = 14 * 24 * time.Hour

// Load returns the agents that earlier runs of the pool on the host found unavailable, and that are not expected back yet.
func Load(ctx context.Context, store journal.Store, name, host string, now time.Time) ([]journal.Parked, error) {
	records, err := store.Find(ctx, journal.Query{Pool: name, Kind: journal.KindIssue, Latest: true, Since: now.Add(-maxRunAge)})
	if err != nil {
		return nil, err
	}
	open, err := store.Find(ctx, journal.Query{Pool: name, Kind: journal.KindIssue, Open: true})
	return journal.ParkedIn(append(records, open...), host, now), err
}

// park adds an agent, replacing its earlier entry. The caller holds l.mu.
func (l *Lot) park(p journal.Parked) {
	if l.parked == nil {
		l.parked = map[agents.Choice]journal.Parked{}
	}
	l.parked[p.Choice()] = p
}

// Waiting returns those of the agents that are unavailable now, earliest return first. Agents that wait for a person are
// last.
func (l *Lot) Waiting(list []agents.Choice, now time.Time) []journal.Parked {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []journal.Parked
	for _, c := range list {
		if p, ok := l.parked[c]; ok && isUnavailable(p, now) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b journal.Parked) int {
		switch {
		case a.Until.IsZero() == b.Until.IsZero():
			return a.Until.Compare(b.Until)
		case a.Until.IsZero():
			return 1
		}
		return -1
	})
	return out
}

// Back returns the earliest return of the agents; zero if none is expected.
func (l *Lot) Back(list []agents.Choice, now time.Time) time.Time {
	if waiting := l.Waiting(list, now); len(waiting) > 0 {
		return waiting[0].Until
	}
	return time.Time{}
}

// firstAvailable returns the index of the first agent that is available and not passed over, or -1. The caller holds l.mu.
func (l *Lot) firstAvailable(list []agents.Choice, over map[agents.Choice]bool, now time.Time) int {
	return slices.IndexFunc(list, func(c agents.Choice) bool {
		p, parked := l.parked[c]
		return !over[c] && !(parked && isUnavailable(p, now))
	})
}

func isUnavailable(p journal.Parked, now time.Time) bool { return p.Until.IsZero() || p.IsWaiting(now) }
