package ledger

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Store keeps what the runs of a pool have used, by day, for all processes. Package journal describes the methods.
type Store interface {
	Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error
	Spent(ctx context.Context, pool string, since, later time.Time) (all, lately agents.Usage, err error)
}

// Account keeps the runs of a process, and their requests to models, within the caps of their project. What other
// processes have spent it reads from the store. It is safe for concurrent use. A nil Account has no caps.
type Account struct {
	caps  Caps
	store Store
	pool  string
	now   func() time.Time

	mu       sync.Mutex
	unstored map[string]agents.Usage // guarded by mu; by run
	passing  int                     // guarded by mu; requests that were admitted and have not ended
	ended    int                     // guarded by mu; requests
	largest  agents.Usage            // guarded by mu; of one answer
	news     chan struct{}           // guarded by mu; closed when passing or largest has changed

	storing sync.Mutex // held during flush
}

// NewAccount makes the account of a pool; without caps it is nil.
func NewAccount(c Caps, s Store, pool string) *Account {
	if c.IsZero() {
		return nil
	}
	return &Account{caps: c, store: s, pool: pool, now: time.Now, unstored: map[string]agents.Usage{}, news: make(chan struct{})}
}

// Left is what the caps leave for another run, next to what is reserved. The error is a *SpentError when nothing is left.
func (a *Account) Left(ctx context.Context, reserved agents.Usage) (loop.Budget, error) {
	if a == nil {
		return loop.Budget{}, nil
	}
	now := a.now()
	spent, err := a.look(ctx, now)
	if err != nil {
		return loop.Budget{}, err
	}
	return a.caps.Left(spent, reserved, now)
}

// look stores what is not stored yet, and reads what all have spent.
func (a *Account) look(ctx context.Context, now time.Time) (spent Spending, err error) {
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

// flush stores what answers have used: no later request passes before, and a crash finds it spent. Many may end at once: the first
// stores for all.
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

// Admit lets a request pass while the caps have something left; End has to be called when it is over. What a request
// will cost is known only afterwards. So those that are on their way count as much as the largest answer so far: a request
// that could be one too many waits for them, and the caps are exceeded by one answer at most.
func (a *Account) Admit(ctx context.Context) error {
	if a == nil {
		return nil
	}
	for {
		a.mu.Lock()
		ended := a.ended
		a.mu.Unlock()
		left, err := a.Left(ctx, agents.Usage{})
		if err != nil {
			return err
		}
		a.mu.Lock()
		if ended == a.ended && a.fits(left) { // else what has ended meanwhile may not be in left
			a.passing++
			a.mu.Unlock()
			return nil
		}
		news, again := a.news, ended != a.ended
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

// fits reports that something is left for one more request when those that are on their way have ended. mu is held.
func (a *Account) fits(left loop.Budget) bool {
	if a.passing == 0 {
		return true
	}
	if a.largest == (agents.Usage{}) {
		return false // nobody knows yet what one costs
	}
	var all agents.Usage
	for range a.passing {
		all = all.Add(a.largest)
	}
	return !left.Spent(all)
}

// Count notes what a run has used in this process, and what one of its answers has, so far.
func (a *Account) Count(run string, used, answer agents.Usage) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unstored[run] = used
	if larger := a.largest.Larger(answer); larger != a.largest {
		a.largest = larger
		a.tell()
	}
}

// Store stores what answers have used. What fails is tried again by the next Admit, which tells.
func (a *Account) Store(ctx context.Context) {
	if a != nil {
		_ = a.flush(ctx)
	}
}

// End says that a request which was admitted is over.
func (a *Account) End() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.passing--
	a.ended++
	a.tell()
}

// tell wakes the requests that wait. mu is held.
func (a *Account) tell() {
	close(a.news)
	a.news = make(chan struct{})
}
