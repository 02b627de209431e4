package look

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// An interrupted merge by a person changes nothing: the issue stands where the run before has left it.
func TestStanding(t *testing.T) {
	t.Parallel()
	run := func(id string, attended bool, outcome journal.Outcome) RunState {
		r := journal.Record{Run: journal.Run{ID: id}}
		r.Settings.Attended, r.Ended, r.Verdict.Outcome = attended, time.Unix(1, 0), outcome
		return StateOf(r)
	}
	work, failed := run("work", false, journal.Succeeded), run("failed", true, journal.GateFailed)
	stopped := run("stopped", true, journal.Interrupted)
	for want, runs := range map[string][]RunState{
		"work":    {work, stopped, stopped},
		"failed":  {work, failed, stopped},
		"stopped": {stopped},
		"left":    {work, run("left", false, journal.Interrupted)},
	} {
		if got := Standing(runs); got.ID != want {
			t.Errorf("%s, want %s", got.ID, want)
		}
	}
}
