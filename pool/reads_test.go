package pool_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// countingJournal is a journal that keeps the largest number of records returned at once.
type countingJournal struct {
	journal.Store
	most atomic.Int64
}

func (c *countingJournal) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	list, err := c.Store.Find(ctx, q)
	if n := int64(len(list)); n > c.most.Load() {
		c.most.Store(n)
	}
	return list, err
}

// A sweep reads only the records of the issues that it looks at, however many other runs there have been.
func TestSweepReadsFewRecords(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("first")
	old := f.one()
	for n := range 50 {
		old.ID, old.Key = fmt.Sprintf("20200101-000000-%012d", n), fmt.Sprintf("old-%d", n)
		old.Started, old.Ended = time.Now().AddDate(0, 0, -60), time.Now().AddDate(0, 0, -60)
		if err := f.store.Save(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
	s := &countingJournal{Store: f.store}
	f.Config.Run.Store = s
	f.issue("second")
	if r := f.one(); r.Key != "second" || r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%s: %+v", r.Key, r.Verdict)
	}
	if n := s.most.Load(); n == 0 || n > 10 {
		t.Errorf("a sweep reads %d records at once", n)
	}
}

// countingTracker counts lists, and the calls that read issues after the run's end.
type countingTracker struct {
	tracker.Tracker
	reported    atomic.Bool
	lists, late atomic.Int64
}

func (r *countingTracker) note() {
	if r.reported.Load() {
		r.late.Add(1)
	}
}

func (r *countingTracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	r.note()
	r.lists.Add(1)
	return r.Tracker.List(ctx, q)
}

func (r *countingTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	r.note()
	return r.Tracker.Get(ctx, key)
}

// A sweep of named issues ends with the last of them. It does not list a backlog that has nothing left for it, however long that
// runs.
func TestNamedSweepReadsNothingMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("first")
	f.issue("second")
	r := &countingTracker{Tracker: f.Config.Run.Tracker}
	f.Config.Run.Tracker, f.Config.Refresh = r, time.Millisecond
	f.onStage(journal.StageEnd, func(journal.Record) { r.reported.Store(true) })
	if got := f.one("first"); got.Key != "first" || got.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%s: %+v", got.Key, got.Verdict)
	}
	if lists, late := r.lists.Load(), r.late.Load(); lists != 1 || late > 0 {
		t.Errorf("%d lists, %d reads after the run", lists, late)
	}
}
