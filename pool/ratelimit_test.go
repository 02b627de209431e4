package pool_test

import (
	"context"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// waitingTracker is a tracker that waits for its server's rate limit before it returns a result.
type waitingTracker struct {
	tracker.Tracker
	until time.Time
}

func (w waitingTracker) Report(ctx context.Context, key string, r tracker.Report) error {
	tracker.NotifyWait(ctx, w.until)
	return w.Tracker.Report(ctx, key, r)
}

// A run that waits for the rate limit of a forge reports that once, with the end of the wait.
func TestRunSaysThatItWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	until := time.Now().Add(40 * time.Second)
	f.Config.Run.Tracker = waitingTracker{f.Config.Run.Tracker, until}
	f.issue("a")
	r := f.only(f.sweep(t.Context()))
	want, said := "waits for the forge's rate limit until "+until.Format(time.TimeOnly), 0
	if err := journal.ReadEvents(r.Dir, func(e journal.Event) error {
		if e.Kind == journal.EventNote && e.Text == want {
			said++
		}
		return nil
	}); err != nil || said != 1 {
		t.Errorf("%q was said %d times, %v", want, said, err)
	}
}
