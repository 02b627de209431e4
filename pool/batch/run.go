package batch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/workspace"
)

// Item is a branch, and what its caller does about it. The functions are called one at a time, but for Renew.
type Item struct {
	Branch
	// Renew renews the claim of the branch's issue. It fails when somebody else has that.
	Renew func(ctx context.Context) error
	// Store stores that the base is about to get the branch: whoever finds that it has, finishes the merge.
	Store func(ctx context.Context, s Stack) error
	// Finish is called when the base has the branch.
	Finish func(ctx context.Context)
	// Alone merges the branch as if there were no others, and reports whether the base has it now.
	Alone func(ctx context.Context) (landed bool)

	done bool
}

// Merge merges the branches into the base of that name: together where they pass together, and otherwise alone. A failure that
// is not a branch's, such as one of the disk, makes it merge the rest alone, where it is met again and said.
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
		return i.Alone(ctx), nil
	}
	together := func(list []*Item) (bool, error) { return m.land(ctx, base, list) }
	if err := Split(fit, together, alone); err != nil {
		m.Says("not merged together: " + err.Error())
	}
	for _, i := range items {
		if !i.done {
			_, _ = alone(i)
		}
	}
}

// fits reports that a branch can be in a stack, as far as is known.
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
		m.Says(fmt.Sprintf("%s is tried on its own: %s", i.Key, why))
	}
	return why == ""
}

// land moves the base to a stack that passes. The lock on merges is held from the look at the base until it has moved.
func (m *Merger) land(ctx context.Context, name string, list []*Item) (landed bool, err error) {
	waiting, enough := workspace.Within(ctx, m.Interrupt, 0) // nothing has moved yet
	defer enough()
	unlock, err := m.Repo.LockMerges(waiting)
	if err != nil {
		return false, err
	}
	defer func() {
		unlock()
		for _, i := range list {
			if i.done = landed; landed {
				i.Finish(ctx)
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
	if _, err := m.Repo.Merge(ctx, base, s.Tip, ""); err != nil {
		return false, err
	}
	return true, nil
}

// renew renews the claims until the function that it returns is called.
func renew(ctx context.Context, every time.Duration, items []*Item) (stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for retry.Sleep(ctx, every) == nil {
			for _, i := range items {
				_ = i.Renew(ctx) // whoever needs the claim renews it once more, and says what fails
			}
		}
	})
	return func() { cancel(nil); renewing.Wait() }
}
