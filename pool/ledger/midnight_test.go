package ledger_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// A day's cap has room again at midnight UTC. The usage after midnight, of a run that began before, counts for the new day.
func TestCapsAtMidnight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the test's clock begins at midnight
		a := ledger.NewAccount(ledger.Caps{Day: loop.Budget{Tokens: 100}}, &journaltest.Memory{}, "p")
		left := func() int64 {
			t.Helper()
			b, err := a.Remaining(t.Context(), agents.Usage{})
			spent, is := errors.AsType[*ledger.SpentError](err)
			if is && !spent.Until.Equal(time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("until %s", spent.Until)
			}
			if err != nil && !is {
				t.Fatal(err)
			}
			return b.Tokens
		}
		for _, c := range []struct {
			after      time.Duration
			used, want int64 // used is the run's usage so far
		}{{23*time.Hour + 59*time.Minute, 60, 40}, {59 * time.Second, 130, 0}, {time.Second, 130, 100}, {time.Hour, 160, 70}} {
			<-time.After(c.after)
			a.Count("r", agents.Usage{Input: c.used})
			if got := left(); got != c.want {
				t.Errorf("at %s %d are left, want %d", time.Now().UTC(), got, c.want)
			}
		}
	})
}
