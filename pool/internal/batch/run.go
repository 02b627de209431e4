package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/worktree"
)

// Item is a branch with the actions of its caller. The functions are called one at a time, except Renew.
type Item struct {
	Branch
	// Renew renews the claim of the branch's issue. It fails if somebody else has taken the claim.
	Renew func(ctx context.Context) error
	// Store stores that the base is about to get the branch, so that recovery can finish the merge.
	Store func(ctx context.Context, s Stack) error
	// Finish is called when the base has the branch. undone is an ErrUndone or nil.
	Finish func(undone error)
	// MergeAlone merges the branch without the others, and reports whether the base has it now.
	MergeAlone func() (landed bool)

	done bool
}

// Merge merges the branches into the base of this name: together if they pass together, otherwise alone. After a failure that
// concerns no branch, for example of the disk, it merges the rest alone; the caller then meets and reports that failure.
func (m *Merger) Merge(ctx context.Context, base string, renewEvery time.Duration, items []*Item) {
	defer renew(ctx, renewEvery, items)()
	var fit []*Item
	for _, i := range items {
		if m.fits(ctx, base, i) {
			fit = append(fit, i)
		}
	}
	alone := func(i *Item) (bool, error) {
		i.done = true
		return i.MergeAlone(), nil
	}
	together := func(list []*Item) (bool, error) { return m.land(ctx, base, list) }
	if err := Split(fit, together, alone); err != nil {
		m.Notify("not merged together: " + err.Error())
	}
	for _, i := range items {
		if !i.done {
			_, _ = alone(i)
		}
	}
}

// fits reports whether a branch can be in a stack, as far as is known.
func (m *Merger) fits(ctx context.Context, base string, i *Item) bool {
	if i.Tip == "" || i.done {
		return false
	}
	on, err := m.Repo.Base(ctx, base)
	why := ""
	if err == nil {
		why, err = m.Fits(ctx, on, i.Branch)
	}
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		m.Notify(fmt.Sprintf("%s is tried alone: %s", i.Key, why))
	}
	return why == ""
}

// land moves the base to a stack that passes. It holds the merge lock from reading the base until the base has moved.
func (m *Merger) land(ctx context.Context, name string, list []*Item) (landed bool, err error) {
	waiting, enough := halt.Within(ctx, halt.Grace(m.Asked, 0)) // nothing has moved yet
	defer enough()
	unlock, err := m.Repo.LockMerges(waiting)
	if err != nil {
		return false, err
	}
	var undone error
	defer func() {
		unlock()
		for _, i := range list {
			if i.done = landed; landed {
				i.Finish(undone)
			}
		}
	}()
	base, err := m.Repo.Base(ctx, name)
	if err != nil {
		return false, err
	}
	branches := make([]Branch, len(list))
	for n, i := range list {
		branches[n] = i.Branch
	}
	s, err := m.Try(ctx, base, branches)
	if err != nil || s == nil {
		return false, err
	}
	for _, i := range list {
		err := i.Renew(waiting)
		if err == nil {
			err = i.Store(ctx, *s)
		}
		if err != nil {
			return false, err
		}
	}
	switch _, err := m.Repo.Merge(ctx, base, s.Tip, ""); {
	case errors.Is(err, worktree.ErrUndone):
		undone = err
	case errors.Is(err, worktree.ErrBehind):
		m.Notify(err.Error())
	case err != nil:
		return false, err
	}
	return true, nil
}

// renew renews the claims until the caller calls stop.
func renew(ctx context.Context, every time.Duration, items []*Item) (stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for retry.Sleep(ctx, every) == nil {
			for _, i := range items {
				_ = i.Renew(ctx) // a later renewal by a user of the claim reports the failure
			}
		}
	})
	return func() { cancel(nil); renewing.Wait() }
}
