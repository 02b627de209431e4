package work

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Tokens and costs have separate medians. Unknown values are ignored, and do not count as 0.
func TestForecast(t *testing.T) {
	t.Parallel()
	supposed := loop.Budget{Tokens: 200000, CostUSD: 2}.Usage()
	for name, c := range map[string]struct {
		used   []agents.Usage
		issues int
		want   string
		tokens int64 // per issue
	}{
		"all known": {[]agents.Usage{{Input: 10, CostUSD: 9}, {Input: 30, CostUSD: 0.5}, {Input: 20, CostUSD: 1}}, 4,
			"Expected cost: $4.00 for 4 issues, at $1.00 each, the median of 3 runs with a.", 20},
		"some unknown": {[]agents.Usage{{Input: 10, Unpriced: 10}, {Input: 20, Unpriced: 20}, {Input: 30, CostUSD: 3}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 3 runs with a; the cost of 2 is unknown.", 20},
		"a part unknown": {[]agents.Usage{{Input: 10, CostUSD: 1, Unpriced: 5}, {Input: 30, CostUSD: 3}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 2 runs with a; the cost of 1 is unknown.", 30},
		"a cost by estimate": {[]agents.Usage{{Input: 10, Output: 5, CostUSD: 2, Estimated: 15}, {Input: 5, Output: 1, CostUSD: 3, Estimated: 2}}, 1,
			"Expected cost: $3.00 for 1 issue, at $3.00 each, the median of 2 runs with a; the cost of 1 is unknown.", 15},
		"none known": {[]agents.Usage{{Input: 1000, Unpriced: 1000}, {Output: 3000, Unpriced: 3000}}, 2,
			"Expected cost: 6.0k tok for 2 issues, at 3.0k tok each, the median of 2 runs with a; the cost of 2 is unknown.", 3000},
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
