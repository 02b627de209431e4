package pool_test

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/pool/journal"
)

// failingJournal is a journal that fails to store runs while err is set.
type failingJournal struct {
	journal.Store
	err   error
	calls atomic.Int32
	works atomic.Bool
}

func (u *failingJournal) Save(ctx context.Context, r journal.Record) error {
	if !u.works.Load() {
		u.calls.Add(1)
		return &fs.PathError{Op: "write", Path: "somewhere", Err: u.err}
	}
	return u.Store.Save(ctx, r)
}

// TestNothingCanBeWritten: if no run can be stored, the sweep reports that once, and the next one works.
func TestNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"full": unix.ENOSPC, "read-only": unix.EROFS, "another user's": unix.EACCES, "SQLite's": errors.New("disk I/O error"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			for _, key := range []string{"a", "b", "c"} {
				f.issue(key)
			}
			store := &failingJournal{Store: f.store, err: err}
			f.Config.Run.Store, f.Config.Parallel = store, 1
			s := f.sweep(t.Context())
			if len(s.Runs) != 0 || len(s.Broken) != 1 || store.calls.Load() != 1 || !errors.Is(s.Unavailable, err) {
				t.Errorf("%d calls: %+v", store.calls.Load(), s)
			}
			store.works.Store(true)
			if s := f.sweep(t.Context()); s.Count(journal.Succeeded) != 3 {
				t.Errorf("afterwards: %+v", s)
			}
			f.clean()
		})
	}
}
