package look

import (
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	starved := journal.Facts{Starved: true}
	for _, c := range []struct {
		state journal.State
		want  string
	}{
		{journal.State{Stage: journal.StageVerify}, "not verified yet"},
		{journal.State{Stage: journal.StageVerify, Facts: starved}, "environment-unavailable, not imported"},
		{journal.State{Stage: journal.StageVerify, Facts: starved, Tip: "aaaa"}, "not verified yet"}, // a later sweep has imported the commits
		{journal.State{Verdict: journal.Verdict{Outcome: journal.Failed}, Facts: starved}, "failed"},
	} {
		if got := OutcomeOf(journal.Record{State: c.state}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
