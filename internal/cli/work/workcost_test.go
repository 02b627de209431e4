package work

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Tokens and costs have their own medians; what is not known counts for nothing, and not as 0.
func TestForecast(t *testing.T) {
	t.Parallel()
	supposed := loop.Budget{Tokens: 200000, CostUSD: 2}.Usage()
	for name, c := range map[string]struct {
		used   []agents.Usage
		issues int
		want   string
		tokens int64 // of each
	}{
		"all known": {[]agents.Usage{{Input: 10, CostUSD: 9}, {Input: 30, CostUSD: 0.5}, {Input: 20, CostUSD: 1}}, 4,
			"Expected cost: $4.00 for 4 issues, at $1.00 each, the median of 3 runs with a.", 20},
		"some unknown": {[]agents.Usage{{Input: 10, Unpriced: 10}, {Input: 20, Unpriced: 20}, {Input: 30, CostUSD: 3}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 3 runs with a; 2 have no known cost.", 20},
		"a part unknown": {[]agents.Usage{{Input: 10, CostUSD: 1, Unpriced: 5}, {Input: 30, CostUSD: 3}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 2 runs with a; 1 has no known cost.", 30},
		"a cost by estimate": {[]agents.Usage{{Input: 10, Output: 5, CostUSD: 2, Estimated: 15}, {Input: 5, Output: 1, CostUSD: 3, Estimated: 2}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 2 runs with a; 1 has no known cost.", 15},
		"none known": {[]agents.Usage{{Input: 1000, Unpriced: 1000}, {Output: 3000, Unpriced: 3000}}, 2,
			"Expected cost: 6.0k tok for 2 issues, at 3.0k tok each, the median of 2 runs with a; 2 have no known cost.", 3000},
		"costs nothing":      {[]agents.Usage{{Input: 3000}}, 1, "Expected cost: 3.0k tok for 1 issue, at 3.0k tok each, the median of 1 run with a.", 3000},
		"nobody counts":      {[]agents.Usage{supposed, supposed.Add(supposed), loop.Budget{Tokens: 5}.Usage()}, 1, "", 0},
		"nobody counts some": {[]agents.Usage{supposed, {Input: 10, CostUSD: 1}}, 1, "Expected cost: $1.00 for 1 issue, at $1.00 each, the median of 1 run with a.", 10},
		"nothing used":       {[]agents.Usage{{}}, 1, "", 0},
		"no run":             {nil, 1, "", 0},
		"no issue":           {[]agents.Usage{{Input: 10, CostUSD: 1}}, 0, "", 0},
	} {
		other := clitest.CostRun("k", 1, agents.Usage{Input: 7, CostUSD: 70})
		other.Model = "m"
		part := clitest.CostRun("k", 1, agents.Usage{Output: 1, CostUSD: 70}.Add(supposed))
		part.Facts.Iterations = []loop.Iteration{{Usage: supposed}, {Usage: agents.Usage{Output: 1, CostUSD: 70}}}
		runs := []journal.Record{other, part}
		for _, u := range c.used {
			runs = append(runs, clitest.CostRun("k", 1, u))
		}
		got, tokens := "", int64(0)
		if f := forecast(runs, agents.Choice{Agent: "a"}, c.issues); f != nil {
			got, tokens = f.String(), f.Each.Tokens()
			if f.Each.Unpriced > 0 && f.Unknown < f.Runs {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if got != c.want || tokens != c.tokens {
			t.Errorf("%s: %q, %d tokens", name, got, tokens)
		}
	}
	m := clitest.CostRun("k", 1, agents.Usage{Input: 7, CostUSD: 70})
	m.Model = "m"
	if got, want := forecast([]journal.Record{m}, agents.Choice{Agent: "a", Model: "m"}, 1).String(), "1 run with a, m."; !strings.HasSuffix(got, want) {
		t.Errorf("%q", got)
	}
}

// The end of a sweep says what it cost, as far as that is known.
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
			": 2 succeeded; >$0.25: the cost of 1 run is not known, or not all of it.\n",
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
