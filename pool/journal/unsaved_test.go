package journal_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
)

// failing is a store that refuses to save while broken is set.
type failing struct {
	journaltest.Memory
	broken atomic.Bool
}

func (f *failing) Save(ctx context.Context, r journal.Record) error {
	if f.broken.Load() {
		return errors.New("disk I/O error")
	}
	runtime.Gosched() // lets other goroutines save first
	return f.Memory.Save(ctx, r)
}

// Find returns the state that could not be saved, and saves the end of a run once that is possible.
func TestUnsaved(t *testing.T) {
	t.Parallel()
	s := &failing{}
	u := &journal.Unsaved{Store: s}
	r := journal.Record{Run: journal.Run{ID: "r", Key: "k"}}
	if err := u.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	s.broken.Store(true)
	r.Ended = time.Now()
	if err := u.Save(t.Context(), r); err == nil {
		t.Error("the error is lost")
	}
	check := func(in journal.Store, want int) {
		t.Helper()
		if list, err := in.Find(t.Context(), journal.Query{Open: true}); err != nil || len(list) != want {
			t.Errorf("%d runs are open, want %d; %v", len(list), want, err)
		}
	}
	check(s, 1)
	check(u, 0)
	check(s, 1)
	s.broken.Store(false)
	check(u, 0)
	check(s, 0)
}

// Saving an older state again does not replace a newer one.
func TestUnsavedKeepsTheNewerState(t *testing.T) {
	t.Parallel()
	s := &failing{}
	u := &journal.Unsaved{Store: s}
	r := journal.Record{Run: journal.Run{ID: "r", Key: "k"}, State: journal.State{Ended: time.Now()}}
	for n := range 500 {
		r.Commits = 2 * n
		s.broken.Store(true)
		if err := u.Save(t.Context(), r); err == nil {
			t.Fatal("the error is lost")
		}
		s.broken.Store(false)
		var find sync.WaitGroup
		find.Go(func() {
			if _, err := u.Find(t.Context(), journal.Query{}); err != nil {
				t.Error(err)
			}
		})
		r.Commits++
		if err := u.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		find.Wait()
		if list, err := s.Find(t.Context(), journal.Query{}); err != nil || len(list) != 1 || list[0].Commits != r.Commits {
			t.Fatalf("round %d: %+v, %v", n, list, err)
		}
	}
}
