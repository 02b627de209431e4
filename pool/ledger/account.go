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
	ended      int                     // guarded by mu; number of ended requests
	largest    agents.Usage            // guarded by mu; usage of the largest answer
	changed    chan struct{}           // guarded by mu; closed when inProgress or largest changes

	storing sync.Mutex // held during flush
}

// NewAccount makes the account of a pool; nil without caps.
func NewAccount(c Caps, s Store, pool string) *Account {
	if c.IsZero() {
		return nil
	}
	return &Account{caps: c, store: s, pool: pool, now: time.Now, unstored: map[string]agents.Usage{}, changed: make(chan struct{})}
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

// Admit admits a request while the caps are not used up; the caller must call End after it. The cost of a request is only
// known afterwards, so each request in progress counts as much as the largest answer so far. A request that might exceed
// the caps waits for them. So the caps are exceeded by at most one answer.
func (a *Account) Admit(ctx context.Context) error {
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
		if ended == a.ended && a.fits(left) { // otherwise left may not include requests that ended meanwhile
			a.inProgress++
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

// fits reports whether something is left for one more request after those in progress. The caller holds mu.
func (a *Account) fits(left loop.Budget) bool {
	if a.inProgress == 0 {
		return true
	}
	if a.largest == (agents.Usage{}) {
		return false // the cost of a request is not known yet
	}
	var all agents.Usage
	for range a.inProgress {
		all = all.Add(a.largest)
	}
	return !left.Exhausted(all)
}

// Count records the total usage of a run in this process, and of one of its answers, so far.
func (a *Account) Count(run string, used, answer agents.Usage) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unstored[run] = used
	if larger := a.largest.Larger(answer); larger != a.largest {
		a.largest = larger
		a.notify()
	}
}

// Store stores the usage of answers. After a failure the next Admit tries again and returns the error.
func (a *Account) Store(ctx context.Context) {
	if a != nil {
		_ = a.flush(ctx)
	}
}

// End records that an admitted request has ended.
func (a *Account) End() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inProgress--
	a.ended++
	a.notify()
}

// notify wakes waiting requests. The caller holds mu.
func (a *Account) notify() {
	close(a.changed)
	a.changed = make(chan struct{})
}
