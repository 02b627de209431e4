package ledger

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Store stores the usage of a pool's runs by day, for all processes. Package journal describes the methods.
type Store interface {
	Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error
	Spent(ctx context.Context, pool string, since, later time.Time) (all, lately agents.Usage, err error)
}

// Account keeps the runs of a process, and their requests to models, within the project's caps. It reads the usage of other
// processes from the store. It is safe for concurrent use. A nil Account has no caps.
type Account struct {
	caps  Caps
	store Store
	pool  string
	now   func() time.Time

	mu         sync.Mutex
	unstored   map[string]agents.Usage // guarded by mu; by run
	inProgress int                     // guarded by mu; admitted requests that have not ended
	reserved   agents.Usage            // guarded by mu; the most that they may use
	ended      int                     // guarded by mu; number of ended requests
	changed    chan struct{}           // guarded by mu; closed when a request ends

	storing sync.Mutex // held during flush
}

// NewAccount makes the account of a pool; nil without caps.
func NewAccount(c Caps, s Store, pool string) *Account {
	if c.IsZero() {
		return nil
	}
	return &Account{caps: c, store: s, pool: pool, now: time.Now, unstored: map[string]agents.Usage{}, changed: make(chan struct{})}
}

// LimitsCost reports whether a cap is in US dollars.
func (a *Account) LimitsCost() bool {
	return a != nil && (a.caps.Day.CostUSD > 0 || a.caps.Month.CostUSD > 0)
}

// Remaining returns what the caps leave for another run after subtracting reserved. It fails with a *SpentError if nothing is
// left.
func (a *Account) Remaining(ctx context.Context, reserved agents.Usage) (loop.Budget, error) {
	if a == nil {
		return loop.Budget{}, nil
	}
	now := a.now()
	spent, err := a.readSpent(ctx, now)
	if err != nil {
		return loop.Budget{}, err
	}
	return a.caps.Remaining(spent, reserved, now)
}

// readSpent stores unstored usage and reads the usage of all runs.
func (a *Account) readSpent(ctx context.Context, now time.Time) (spent Spending, err error) {
	if err = a.flush(ctx); err != nil {
		return spent, err
	}
	since := DayOf(now)
	if a.caps.Month != (loop.Budget{}) {
		since = MonthOf(now)
	}
	spent.Month, spent.Day, err = a.store.Spent(ctx, a.pool, since, DayOf(now))
	return spent, err
}

// flush stores the usage of answers. It precedes every later request, so that after a crash the usage is known. If many
// requests end together, the first call stores for all.
func (a *Account) flush(ctx context.Context) error {
	a.storing.Lock()
	defer a.storing.Unlock()
	a.mu.Lock()
	runs := maps.Clone(a.unstored)
	a.mu.Unlock()
	for run, used := range runs {
		if err := a.store.Spend(ctx, a.pool, run, used, a.now()); err != nil {
			return err
		}
		a.mu.Lock()
		if a.unstored[run] == used {
			delete(a.unstored, run)
		}
		a.mu.Unlock()
	}
	return nil
}

// Admit admits a request while the caps are not used up; the caller must call End after it. need is the most that the request may
// use. One that does not fit beside those in progress waits for them. A request that is alone always fits, so the caps are exceeded
// by at most one answer.
func (a *Account) Admit(ctx context.Context, need agents.Usage) error {
	if a == nil {
		return nil
	}
	for {
		a.mu.Lock()
		ended := a.ended
		a.mu.Unlock()
		left, err := a.Remaining(ctx, agents.Usage{})
		if err != nil {
			return err
		}
		a.mu.Lock()
		if ended == a.ended && (a.inProgress == 0 || !left.Exhausted(a.reserved.Add(need))) { // otherwise left may lack requests that ended
			a.inProgress++
			a.reserved = a.reserved.Add(need)
			a.mu.Unlock()
			return nil
		}
		news, again := a.changed, ended != a.ended
		a.mu.Unlock()
		if again {
			continue
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Count records the total usage of a run in this process so far.
func (a *Account) Count(run string, used agents.Usage) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unstored[run] = used
}

// Store stores the usage of answers. After a failure the next Admit tries again and returns the error.
func (a *Account) Store(ctx context.Context) {
	if a != nil {
		_ = a.flush(ctx)
	}
}

// End records that an admitted request has ended. need is that of Admit.
func (a *Account) End(need agents.Usage) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inProgress--
	a.reserved = a.reserved.Minus(need)
	a.ended++
	close(a.changed)
	a.changed = make(chan struct{})
}
