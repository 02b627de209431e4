package journal_test

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// An issue's history determines its next attempt, its budget and its follow-up rounds.
func TestHistory(t *testing.T) {
	t.Parallel()
	var h journal.History
	var tally journal.Tally
	check := func(when string, attempt, failures, rounds, tokens int) {
		t.Helper()
		next := journal.Record{Run: journal.Run{Earlier: tally}}.Tally()
		if next.Attempts+1 != attempt || next.Failures != failures || next.Rounds != rounds || next.Spent.Input != int64(tokens) {
			t.Errorf("%s: %+v", when, next)
		}
	}
	ran := func(o journal.Outcome, counted, final bool, followUp string) {
		r := journal.Record{Run: journal.Run{FollowUp: followUp, Earlier: tally}}
		r.Verdict = journal.Verdict{Outcome: o, Counted: counted, Final: final}
		r.Facts.Usage, r.Ended = agents.Usage{Input: 10}, time.Unix(1, 0)
		h, tally = append(h, r), r.Tally()
	}
	check("nothing yet", 1, 0, 0, 0)
	if _, ok := h.Last(); ok {
		t.Error("there is no last run")
	}
	ran(journal.Failed, true, false, "")
	check("one failure", 2, 1, 0, 10)
	ran(journal.Failed, false, false, "")
	check("one that does not count", 2, 2, 0, 20)
	ran(journal.Interrupted, false, false, "")
	ran(journal.AgentUnavailable, false, false, "")
	check("neither does an interruption", 2, 2, 0, 40)
	on := journal.Record{Run: journal.Run{Earlier: tally}, State: journal.State{Facts: journal.Facts{Usage: agents.Usage{Input: 10}}}}
	if got := on.Tally(); got.Spent.Input != 50 || got.Attempts != 1 || got.Outcome != journal.AgentUnavailable {
		t.Errorf("a run that is on: %+v", got)
	}
	starved := journal.Record{Run: journal.Run{Earlier: tally}}
	starved.Verdict = journal.Verdict{Outcome: journal.EnvironmentUnavailable, Reason: journal.Reason{Code: journal.ReasonMachine}}
	if got := starved.Tally(); got.Failures != 3 || got.Attempts != 1 {
		t.Errorf("an import that the machine has kept: %+v", got)
	}
	h = append(h, on)
	if last, ok := h.Last(); !ok || last.Verdict.Outcome != journal.AgentUnavailable {
		t.Errorf("last %+v", last)
	}
	ran(journal.GateFailed, true, true, "")
	check("a person has taken over", 1, 0, 0, 0)
	ran(journal.Succeeded, false, true, "")
	ran(journal.Succeeded, false, true, "checks")
	ran(journal.Interrupted, false, false, "checks")
	ran(journal.Failed, true, false, "review")
	check("follow-ups", 2, 1, 2, 20)
	ran(journal.Succeeded, false, true, "")
	check("the issue again", 1, 0, 0, 0)
}

func TestStagesAreOrdered(t *testing.T) {
	t.Parallel()
	all := journal.Stages()
	for i, a := range all {
		for j, b := range all {
			if a.Before(b) != (i < j) {
				t.Errorf("%s before %s: %v", a, b, a.Before(b))
			}
		}
	}
	if journal.Stage("unknown").Before(journal.StageEnd) {
		t.Error("an unknown stage comes before nothing")
	}
}
