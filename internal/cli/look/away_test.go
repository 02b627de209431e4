package look

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// awayTracker answers that it is away, but only once: it lets every other request wait.
type awayTracker struct {
	tracker.Tracker
	test *testing.T
}

func (awayTracker) Name() string { return "github" }

func (a awayTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	if key == "0" {
		return tracker.Issue{}, &tracker.UnavailableError{Err: errors.New("no route")}
	}
	if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) {
		a.test.Errorf("issue %s: %v", key, ctx.Err())
	}
	return tracker.Issue{}, ctx.Err()
}

// The first answer that the tracker is away ends the other requests of a status.
func TestStatusWithATrackerThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var states []RunState
		for n := range rowsShown {
			r := journal.Record{Run: journal.Run{Key: fmt.Sprint(n), Kind: journal.KindIssue}}
			r.Ended, r.Verdict.Outcome = time.Unix(1, 0), journal.GateFailed
			states = append(states, StateOf(r))
		}
		markClosed(t.Context(), &compose.Parts{Backlog: awayTracker{test: t}, Log: slog.New(slog.DiscardHandler)}, states)
	})
}
