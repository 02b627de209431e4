package pool_test

import (
	"context"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// readOnlyTracker shows the issues of another tracker.
type readOnlyTracker struct {
	tracker.ReadOnly
	t tracker.Tracker
}

func (u readOnlyTracker) Name() string { return u.t.Name() }

func (u readOnlyTracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	return u.t.List(ctx, q)
}

func (u readOnlyTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	return u.t.Get(ctx, key)
}

// For a tracker that nobody can write to, claims and journals have the outcomes of the issues: each is worked as often as any
// other.
func TestReadOnlyTracker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent   string
		outcome journal.Outcome
		runs    int
	}{
		"success": {commits, journal.Succeeded, 1},
		"failure": {"exit 1", journal.Failed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, c.agent)
			f.issue("a")
			before := f.text("a")
			f.Config.Run.Tracker = readOnlyTracker{t: f.Config.Run.Tracker}
			f.Config.Run.Retry.MaxAttempts, f.Config.Run.Retry.Backoff = 2, -1
			for n := range 4 {
				s := f.sweep(t.Context())
				if n < c.runs && (len(s.Runs) != 1 || s.Runs[0].Verdict.Outcome != c.outcome || s.Runs[0].Ended.IsZero()) {
					t.Errorf("sweep %d: %+v", n, s)
				}
				if n >= c.runs && (len(s.Runs) != 0 || len(s.Broken) != 0 || skips(s)["a"] != journal.SkipDone) {
					t.Errorf("sweep %d: %+v", n, s)
				}
			}
			if len(f.runs("a")) != c.runs || f.text("a") != before {
				t.Errorf("%d runs; the issue says:\n%s", len(f.runs("a")), f.text("a"))
			}
			f.clean()
		})
	}
}
