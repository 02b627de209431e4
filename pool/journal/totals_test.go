package journal_test

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
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
