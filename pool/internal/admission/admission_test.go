package admission_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/internal/admission"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// store calls a function after its first read of the records.
type store struct {
	journaltest.Memory
	once  sync.Once
	first func()
}

func (s *store) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	found, err := s.Memory.Find(ctx, q)
	s.once.Do(s.first)
	return found, err
}

// Runs of two processes that begin at the same time do not both rely on everything that is left.
func TestTwoProcessesReserve(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "locks", "admission")
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		var recs [2]journal.Record
		var errs [2]error
		begin := func(n int) {
			caps := ledger.Caps{Day: loop.Budget{Tokens: 100}}
			d := &admission.Desk{
				Store: s, Account: ledger.NewAccount(caps, s, ""), Budget: loop.Budget{Tokens: 80}, Lock: lock,
				Dead: func(journal.Record) bool { return false },
			}
			recs[n] = journal.Record{Run: journal.Run{ID: string(rune('a' + n)), Agent: "agent"}, State: journal.State{Stage: journal.StageWork}}
			errs[n] = d.Admit(t.Context(), &recs[n])
		}
		var second sync.WaitGroup
		s.first = func() {
			second.Go(func() { begin(1) })
			synctest.Wait() // the other process has read the records, too, or waits
		}
		begin(0)
		second.Wait()
		if a, b := recs[0].Reserved.Tokens(), recs[1].Reserved.Tokens(); errs != [2]error{} || a != 80 || b != 20 {
			t.Errorf("%d and %d tokens are reserved of 100; %v", a, b, errs)
		}
	})
}
