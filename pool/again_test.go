package pool_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
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

// A person's request for another run does not wait for a long run either, however often the issue was worked in this sweep.
func TestSweepWorksARequestedIssueAgain(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Config.Run.Options.Command = []string{"sh", "-c", `case $RALPH_ISSUE_KEY in quick) echo started; ` + commits + `; exit;; esac; ` + gated}
	g.issue("quick")
	g.issue("slow")
	p := g.pool()
	wait := g.begin(t.Context(), p)
	for range 3 {
		if got := g.wait(g.ended, 1, "ended"); !slices.Equal(got, []string{"quick"}) {
			t.Fatalf("ended: %v", got)
		}
		if err := p.Requeue(t.Context(), "quick", "Ada", tracker.Fix, "once more"); err != nil {
			t.Fatal(err)
		}
		p.Wake()
	}
	if got := g.wait(g.ended, 1, "ended"); !slices.Equal(got, []string{"quick"}) {
		t.Fatalf("ended: %v", got)
	}
	g.goOn("slow")
	if s := wait(); s.Count(journal.Succeeded) != 2 {
		t.Errorf("%+v", s.Runs)
	}
	g.clean()
}
