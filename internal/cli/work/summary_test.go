package work

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// The summary of a sweep has its cost, as far as it is known.
func TestSummaryCost(t *testing.T) {
	t.Parallel()
	silent, priced := clitest.CostRun("one", 1, agents.Usage{}), clitest.CostRun("two", 1, agents.Usage{CostUSD: 0.25})
	counted := clitest.CostRun("three", 1, agents.Usage{Input: 12000})
	for _, c := range []struct {
		runs       []journal.Record
		table, end string
	}{
		{[]journal.Record{silent}, "ISSUE  OUTCOME    COMMITS  TOOK\none    succeeded  0        1m0s\n", ": 1 succeeded.\n"},
		{[]journal.Record{counted}, "ISSUE  OUTCOME    COMMITS  TOOK  COST\nthree  succeeded  0        1m0s  12k tok\n", ": 1 succeeded; 12k tok.\n"},
		{[]journal.Record{priced}, "ISSUE  OUTCOME    COMMITS  TOOK  COST\ntwo    succeeded  0        1m0s  $0.25\n", ": 1 succeeded; $0.25.\n"},
		{
			[]journal.Record{silent, priced}, "ISSUE  OUTCOME    COMMITS  TOOK  COST\none    succeeded  0        1m0s  -\ntwo    succeeded  0        1m0s  $0.25\n",
			": 2 succeeded; >$0.25: the cost of 1 run is unknown or incomplete.\n",
		},
	} {
		var out strings.Builder
		a := compose.New(compose.Host{Stdout: &out})
		for i := range c.runs {
			c.runs[i].Settings.Checks.Gate = []loop.Command{{Line: "true"}}
		}
		if err := summary(a, pool.Summary{Runs: c.runs}, &progress.View{UI: a.UI, Name: func(key string) string { return key }}, "", false); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, c.table) || !strings.HasSuffix(got, c.end) {
			t.Errorf("got\n%s\nwant\n%s…%s", got, c.table, c.end)
		}
	}
	if got := summaryJSON(pool.Summary{Runs: []journal.Record{counted, priced}}).Spent; got != (agents.Usage{Input: 12000, CostUSD: 0.25}) {
		t.Errorf("spent %+v", got)
	}
}

// The command that merges is one that ralph does not refuse.
func TestNoteNextOfEdited(t *testing.T) {
	t.Parallel()
	edited, plain := clitest.CostRun("one", 1, agents.Usage{}), clitest.CostRun("two", 1, agents.Usage{})
	edited.Settings.Publish, plain.Settings.Publish = journal.PublishBranch, journal.PublishBranch
	edited.Verdict.Reason.Code = journal.ReasonEdited
	for want, runs := range map[string][]journal.Record{
		"To look: ralph diff one; to merge: ralph merge --edited one\n":              {edited},
		"To look: ralph diff KEY; to merge: ralph merge --edited KEY\n":              {edited, edited},
		"To look: ralph diff KEY; to merge: ralph merge KEY, or ralph merge --all\n": {edited, plain},
	} {
		var out strings.Builder
		noteNext(compose.New(compose.Host{Stderr: &out}), runs)
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}

// An issue that ended before its agent started was not worked.
func TestSummaryWithoutAgent(t *testing.T) {
	t.Parallel()
	r := clitest.CostRun("one", 1, agents.Usage{})
	r.Facts.Iterations, r.Verdict.Outcome, r.Settings.Checks.Gate = nil, journal.EnvironmentUnavailable, []loop.Command{{Line: "true"}}
	var out strings.Builder
	a := compose.New(compose.Host{Stdout: &out})
	view := &progress.View{UI: a.UI, Name: func(key string) string { return key }}
	if err := summary(a, pool.Summary{Runs: []journal.Record{r}}, view, "", false); err != nil || !strings.Contains(out.String(), "\nNo issue was worked in ") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// The last line does not repeat a reason that a run's line has printed in full.
func TestSayOnce(t *testing.T) {
	t.Parallel()
	a := compose.New(compose.Host{Stdout: io.Discard, Stderr: io.Discard})
	view := &progress.View{UI: a.UI, Name: func(key string) string { return key }}
	view.Event(journal.Event{
		Kind: journal.EventEnded, Key: "one", Run: "1", Outcome: journal.EnvironmentUnavailable,
		Reason: &journal.Reason{Code: journal.ReasonOpen, Detail: "open sandbox docker: no room"},
	})
	for text, want := range map[string]string{
		"open sandbox docker: no room": "no issue can be worked, see above",
		"open sandbox docker: no file": "open sandbox docker: no file",
	} {
		cause := errors.New(text)
		err := &exit.Error{Status: exit.Parked, Err: cause, Hint: "make room"}
		if sayOnce(err, cause, view); err.Error() != want || err.Hint != "make room" {
			t.Errorf("%s: %v, %s", text, err, err.Hint)
		}
	}
}
