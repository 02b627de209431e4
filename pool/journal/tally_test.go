package journal_test

import (
	"fmt"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A person's request is valid until a run ends that answers it.
func TestAskedStands(t *testing.T) {
	t.Parallel()
	fix, fresh := journal.Asked{ID: "1", Text: "More."}, journal.Asked{ID: "1", Fresh: true}
	for name, c := range map[string]struct {
		asked   journal.Asked
		verdict journal.Verdict
		stands  bool
	}{
		"a run that is on":          {fix, journal.Verdict{}, true},
		"a final end":               {fix, journal.Verdict{Outcome: journal.Succeeded, Final: true}, false},
		"a failure before the last": {fix, journal.Verdict{Outcome: journal.Failed}, true},
		"an interruption":           {fix, journal.Verdict{Outcome: journal.Interrupted}, true},
		"no agent":                  {fix, journal.Verdict{Outcome: journal.AgentUnavailable}, true},
		"no environment":            {fresh, journal.Verdict{Outcome: journal.EnvironmentUnavailable}, true},
		"a fresh start that failed": {fresh, journal.Verdict{Outcome: journal.Failed}, false},
		"one that was interrupted":  {fresh, journal.Verdict{Outcome: journal.Interrupted}, true},
	} {
		r := journal.Record{Run: journal.Run{ID: "r", Earlier: journal.Tally{Attempts: 3, Final: true}.Restart(c.asked)}, State: journal.State{Verdict: c.verdict}}
		if got := r.Tally(); (got.Asked != nil) != c.stands || len(got.Commands) != 1 || got.Attempts != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A tally has each command once, however many sources report it, and remembers only the last ones.
func TestTallyWith(t *testing.T) {
	t.Parallel()
	ended := journal.Tally{Run: "r", Attempts: 2, Final: true}
	asked := ended.Restart(journal.Asked{ID: "1"})
	taken := asked
	taken.Asked, taken.Attempts = nil, 1
	if got := ended.With(asked); got.Asked == nil || got.Attempts != 0 || got.Run != "r" {
		t.Errorf("what another place knows is lost: %+v", got)
	}
	if got := taken.With(asked); got.Asked != nil || got.Attempts != 1 {
		t.Errorf("a command that was taken up stands again: %+v", got)
	}
	many := journal.Tally{}
	for n := range 100 {
		many = many.Restart(journal.Asked{ID: fmt.Sprint(n)})
	}
	if n := len(many.Commands); n > 20 || many.Commands[n-1] != "99" {
		t.Errorf("commands: %v", many.Commands)
	}
}

// A run that ended before it had a worktree does not change the tip of the work.
func TestTipOfTheWork(t *testing.T) {
	t.Parallel()
	ended := func(earlier journal.Tally, tip string) journal.Tally {
		r := journal.Record{Run: journal.Run{Earlier: earlier}}
		r.Tip, r.Verdict.Outcome = tip, journal.AgentUnavailable
		return r.Tally()
	}
	first := ended(journal.Tally{}, "a")
	if got := ended(first, ""); got.Tip != "a" {
		t.Errorf("the tip is %q", got.Tip)
	}
	if got := ended(first, "b"); got.Tip != "b" {
		t.Errorf("the tip is %q", got.Tip)
	}
}
