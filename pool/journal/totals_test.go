package journal_test

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// An issue that was worked, and merged by hand, counts as one run; the cost of the review of the merge counts.
func TestSumOfRunsOfAgents(t *testing.T) {
	t.Parallel()
	record := func(k journal.Kind, attended bool, cost float64) (r journal.Record) {
		r.Kind, r.Settings.Attended, r.Verdict.Outcome, r.Facts.Usage.CostUSD = k, attended, journal.Succeeded, cost
		r.Started = time.Unix(0, 0)
		r.Ended = r.Started.Add(time.Second)
		return r
	}
	work := record(journal.KindIssue, false, 1)
	work.Agent = "claude"
	got := map[string]journal.Total{}
	for _, x := range journal.Sum([]journal.Record{
		work, record(journal.KindIssue, true, 0), record(journal.KindIssue, true, 0.5), record(journal.KindCommand, false, 0),
	}) {
		got[x.Agent] = x
	}
	if len(got) != 2 || got["claude"].Runs != 1 || got["claude"].Seconds != 1 || got[""].Runs != 0 || got[""].Seconds != 0 || got[""].Usage != (agents.Usage{CostUSD: 0.5}) {
		t.Errorf("%+v", got)
	}
	if list := journal.Sum([]journal.Record{record(journal.KindIssue, true, 0)}); len(list) != 0 {
		t.Errorf("a merge that has cost nothing: %+v", list)
	}
}

// A crash loses the iteration that was running, and its cost; a run that ended before the agent's work has cost nothing.
func TestSumCountsRunsThatLostAnIteration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		facts journal.Facts
		want  int
	}{
		"died at work":         {journal.Facts{Stop: journal.StopCrash, StoppedStage: journal.StageWork}, 1},
		"died before it":       {journal.Facts{Stop: journal.StopCrash, StoppedStage: journal.StagePrepare}, 0},
		"not opened":           {journal.Facts{Open: &journal.Fault{}}, 0},
		"published old work":   {journal.Facts{End: loop.EndDone}, 0},
		"reported nothing":     {journal.Facts{End: loop.EndDone, Iterations: []loop.Iteration{{}}}, 1},
		"was refused":          {journal.Facts{End: loop.EndDone, Iterations: []loop.Iteration{{}}, UsedNothing: true}, 0},
		"partly without price": {journal.Facts{End: loop.EndDone, Usage: agents.Usage{CostUSD: 1, Unpriced: 1}}, 1},
	} {
		r := journal.Record{Run: journal.Run{Kind: journal.KindIssue, Agent: "a"}, State: journal.State{Facts: c.facts}}
		if got := journal.Sum([]journal.Record{r}); got[0].Unknown != c.want || r.CostUnknown() != (c.want > 0) {
			t.Errorf("%s: %+v, want %d unknown", name, got[0], c.want)
		}
	}
}

// If the clock is set back during a run, the time of other runs is not reduced.
func TestSumAfterAClockWasSetBack(t *testing.T) {
	t.Parallel()
	var ahead, good journal.Record
	ahead.Started, ahead.Ended = time.Unix(7200, 0), time.Unix(3600, 0)
	good.Started, good.Ended = time.Unix(3600, 0), time.Unix(3610, 0)
	list := journal.Sum([]journal.Record{ahead, good})
	if len(list) != 1 || list[0].Runs != 2 || list[0].Seconds != 10 {
		t.Errorf("%+v", list)
	}
}

// A run has a verdict after the check on a clean checkout, but it may change until the run ends.
func TestSumOfARunThatHasNotEnded(t *testing.T) {
	t.Parallel()
	var r journal.Record
	r.Verdict.Outcome = journal.Succeeded
	if list := journal.Sum([]journal.Record{r}); len(list) != 1 || list[0].Outcome != "" {
		t.Errorf("%+v", list)
	}
}
