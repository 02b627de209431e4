package look

import (
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]journal.State{
		"not verified yet":                      {Stage: journal.StageVerify},
		"environment-unavailable, not imported": {Stage: journal.StageVerify, Facts: journal.Facts{Starved: true}},
		"failed":                                {Verdict: journal.Verdict{Outcome: journal.Failed}, Facts: journal.Facts{Starved: true}},
	} {
		if got := OutcomeOf(journal.Record{State: s}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
