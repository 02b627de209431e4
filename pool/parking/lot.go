package parking

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Lot is the agents that are unavailable, and the runs that are on. The zero Lot is ready for Turns; runs are counted once
// SetMost has been called. It is safe for concurrent use.
type Lot struct {
	// Slowed is told when fewer runs may begin, without PID and Process; nil: nobody is.
	Slowed func(Slow)

	mu     sync.Mutex
	parked map[agents.Choice]journal.Parked // guarded by mu
	paces  map[string]Pace                  // guarded by mu; by the agent's name
	most   int                              // guarded by mu; runs at once
	busy   int                              // guarded by mu; runs that are on
}

// Load replaces what is known by the list, and by agents whose login is missing. What else waits for a person is tried again.
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

// Park adds agents that runs elsewhere found unavailable. What this lot knows for longer stays.
func (l *Lot) Park(list []journal.Parked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range list {
		if old, ok := l.parked[p.Choice()]; !ok || !old.Until.IsZero() && old.Until.Before(p.Until) {
			l.park(p)
		}
	}
}

// memory is how old runs are at most that still say of an agent that it is unavailable: reading them all takes long.
const memory = 14 * 24 * time.Hour

// Load reads from the journal which agents earlier runs of this name on the host found unavailable, and are not expected back
// yet.
func Load(ctx context.Context, store journal.Store, name, host string, now time.Time) ([]journal.Parked, error) {
	records, err := store.Find(ctx, journal.Query{Pool: name, Kind: journal.KindIssue, Latest: true, Since: now.Add(-memory)})
	if err != nil {
		return nil, err
	}
	open, err := store.Find(ctx, journal.Query{Pool: name, Kind: journal.KindIssue, Open: true})
	return journal.ParkedIn(append(records, open...), host, now), err
}

// park adds an agent, in the place of what was known of it. It needs l.mu.
func (l *Lot) park(p journal.Parked) {
	if l.parked == nil {
		l.parked = map[agents.Choice]journal.Parked{}
	}
	l.parked[p.Choice()] = p
}

// Waiting lists those of the agents that are unavailable now, the first that is expected back first. Those that wait for a
// person are last.
func (l *Lot) Waiting(list []agents.Choice, now time.Time) []journal.Parked {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []journal.Parked
	for _, c := range list {
		if p, ok := l.parked[c]; ok && waits(p, now) {
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

// Back is when the first of the agents is expected back; zero when none waits for a time.
func (l *Lot) Back(list []agents.Choice, now time.Time) time.Time {
	if waiting := l.Waiting(list, now); len(waiting) > 0 {
		return waiting[0].Until
	}
	return time.Time{}
}

// first is the place of the first agent that is available and not passed over; -1: there is none. It needs l.mu.
func (l *Lot) first(list []agents.Choice, over map[agents.Choice]bool, now time.Time) int {
	return slices.IndexFunc(list, func(c agents.Choice) bool {
		p, parked := l.parked[c]
		return !over[c] && !(parked && waits(p, now))
	})
}

func waits(p journal.Parked, now time.Time) bool { return p.Until.IsZero() || p.Waits(now) }
