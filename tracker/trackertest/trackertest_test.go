package trackertest_test

import (
	"context"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

// fixed is a read-only backlog in memory.
type fixed struct {
	tracker.ReadOnly
	issues []tracker.Issue
}

func (fixed) Name() string { return "fixed" }

func (f fixed) List(ctx context.Context, _ tracker.Query) (l tracker.Listing, err error) {
	for _, i := range f.issues {
		if i.Open {
			l.Issues = append(l.Issues, i)
		}
	}
	return l, context.Cause(ctx)
}

func (f fixed) Get(ctx context.Context, key string) (tracker.Issue, error) {
	for _, i := range f.issues {
		if i.Key == key {
			return i, context.Cause(ctx)
		}
	}
	return tracker.Issue{}, tracker.ErrNotFound
}

// TestReadOnly: a read-only tracker passes the suite.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{ReadOnly: true, New: func(_ *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
		var f fixed
		var b trackertest.Backlog
		for _, s := range seeds {
			i := tracker.Issue{
				Key: tracker.Key(s.Name), ID: s.Name, URL: "memory:" + s.Name, Title: s.Title, Body: s.Body, Author: s.Author,
				Labels: s.Labels, Open: !s.Closed, Priority: s.Priority, Created: s.Created,
			}
			for _, n := range s.BlockedBy {
				i.BlockedBy = append(i.BlockedBy, tracker.Blocker{Key: b.Keys[n], Open: f.issues[n].Open})
			}
			f.issues = append(f.issues, i)
			b.Keys = append(b.Keys, i.Key)
		}
		b.Tracker = f
		return b
	}})
}
