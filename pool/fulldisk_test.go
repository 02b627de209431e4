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

// unsaved is a journal that stores no run until that works again.
type unsaved struct {
	journal.Store
	err   error
	calls atomic.Int32
	works atomic.Bool
}

func (u *unsaved) Save(ctx context.Context, r journal.Record) error {
	if !u.works.Load() {
		u.calls.Add(1)
		return &fs.PathError{Op: "write", Path: "somewhere", Err: u.err}
	}
	return u.Store.Save(ctx, r)
}

// TestNothingCanBeWritten: where no run can be claimed for want of a disk, the sweep says so once, and the next one goes on.
func TestNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		broken int
		over   bool
	}{
		"full":      {unix.ENOSPC, 1, true},
		"read-only": {unix.EROFS, 1, true},
		"one's own": {unix.EACCES, 3, false}, // such as a folder that belongs to another user
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			for _, key := range []string{"a", "b", "c"} {
				f.issue(key)
			}
			store := &unsaved{Store: f.store, err: c.err}
			f.Config.Run.Store, f.Config.Parallel = store, 1
			s := f.sweep(t.Context())
			if len(s.Runs) != 0 || len(s.Broken) != c.broken || int(store.calls.Load()) != c.broken || errors.Is(s.Unavailable, c.err) != c.over {
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
