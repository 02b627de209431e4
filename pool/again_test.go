package pool_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A failed issue does not wait for a long run: the running sweep works it again.
func TestSweepWorksAFailedIssueAgain(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Config.Run.Options.Command = []string{"sh", "-c", `case $RALPH_ISSUE_KEY in bad) echo started; exit 3;; esac; ` + gated}
	g.Config.Refresh, g.Config.Run.Retry = time.Millisecond, journal.Limits{MaxAttempts: 2, Backoff: -1}
	g.issue("bad")
	g.issue("slow")
	p := g.pool()
	p.SetRetryDelay(time.Nanosecond)
	wait := g.begin(t.Context(), p)
	if got := g.wait(g.ended, 2, "ended"); !slices.Equal(got, []string{"bad", "bad"}) {
		t.Errorf("ended: %v", got)
	}
	g.goOn("slow")
	if s := wait(); s.Count(journal.Failed) != 1 || s.Count(journal.Succeeded) != 1 {
		t.Errorf("%+v", s.Runs)
	}
	g.clean()
}
