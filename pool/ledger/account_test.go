package ledger

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// sums is a store for one day.
type sums struct {
	mu   sync.Mutex
	runs map[string]agents.Usage
	err  error
}

func (s *sums) Spend(_ context.Context, _, run string, used agents.Usage, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[run] = s.runs[run].Larger(used)
	return s.err
}

func (s *sums) Spent(context.Context, string, time.Time, time.Time) (all, lately agents.Usage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, used := range s.runs {
		all = all.Add(used)
	}
	return all, all, s.err
}

// With any number of concurrent workers, a cap is exceeded at most by the last answer.
func TestAdmitExceedsByOneAnswer(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			const limit, workers = 100, 8
			one := agents.Usage{Input: 6, Output: 1}
			s := &sums{runs: map[string]agents.Usage{"earlier": {Input: 40}}}
			a := NewAccount(Caps{Day: loop.Budget{Tokens: limit}}, s, "")
			var g sync.WaitGroup
			for n := range workers {
				g.Go(func() {
					used := agents.Usage{}
					for a.Admit(t.Context(), one) == nil {
						<-time.After(time.Duration(n+1) * time.Second) // by the test's clock
						used = used.Add(one)
						a.Count(string(rune('a'+n)), used)
						a.End(one)
					}
				})
			}
			g.Wait()
			spent, _, _ := s.Spent(t.Context(), "", time.Time{}, time.Time{})
			if spent.Tokens() < limit || spent.Tokens() >= limit+one.Tokens() {
				t.Errorf("%d tokens are spent of %d", spent.Tokens(), limit)
			}
		})
	}
}

// A request that may use more than is left passes alone, whatever earlier ones have used. A waiting request that is cancelled does
// not count.
func TestLargeRequestPassesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := NewAccount(Caps{Month: loop.Budget{CostUSD: 1}}, &sums{runs: map[string]agents.Usage{}}, "")
		small, large := agents.Usage{CostUSD: 0.1}, agents.Usage{CostUSD: 2}
		if err := a.Admit(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		a.Count("r", small)
		a.End(small)
		if err := a.Admit(t.Context(), large); err != nil {
			t.Fatal(err)
		}
		ctx, giveUp := context.WithCancelCause(t.Context())
		gone, second := make(chan error, 1), make(chan error, 1)
		go func() { gone <- a.Admit(ctx, small) }()
		go func() { second <- a.Admit(t.Context(), small) }()
		synctest.Wait()
		giveUp(errors.New("hung up"))
		if err := <-gone; err == nil {
			t.Error("it was admitted")
		}
		select {
		case err := <-second:
			t.Errorf("the second passes with the first: %v", err)
		default:
		}
		a.Count("r", agents.Usage{CostUSD: 0.2})
		a.End(large)
		if err := <-second; err != nil {
			t.Error(err)
		}
		if err := a.Admit(t.Context(), small); err != nil {
			t.Error(err)
		}
	})
}

// If the usage cannot be read, no request passes and no run begins.
func TestUnreadableStore(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	a := NewAccount(Caps{Day: loop.Budget{Tokens: 1}}, &sums{err: broken}, "")
	if err := a.Admit(t.Context(), agents.Usage{}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := a.Remaining(t.Context(), agents.Usage{}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestNoCaps(t *testing.T) {
	t.Parallel()
	a := NewAccount(Caps{}, nil, "")
	left, err := a.Remaining(t.Context(), agents.Usage{})
	if err = errors.Join(err, a.Admit(t.Context(), agents.Usage{})); err != nil || left != (loop.Budget{}) {
		t.Errorf("%+v, %v", left, err)
	}
	a.Count("r", agents.Usage{Input: 1})
	a.End(agents.Usage{})
}
