package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
)

// forecastFrom is the maximum age of the runs in a forecast: prices and habits change.
const forecastFrom = 90 * 24 * time.Hour

// forecastData is the expected cost of some issues, from the usage of earlier runs with the same agent and model.
type forecastData struct {
	Issues int    `json:"issues"`
	Agent  string `json:"agent"`
	Model  string `json:"model,omitempty"`
	Runs   int    `json:"runs"` // earlier runs
	// Unknown is the number of these runs without a known cost.
	Unknown int `json:"runs_without_cost"`
	// Each has the median of tokens, and the median of known costs. Without a known cost all tokens are unpriced.
	Each agents.Usage `json:"each"`
	All  agents.Usage `json:"all"`
}

// expected returns the forecast for a number of issues, or nil if nothing is known.
func expected(ctx context.Context, c run.Config, issues int) (*forecastData, error) {
	chain := c.Chain(1)
	if len(chain) == 0 || issues == 0 {
		return nil, nil //nolint:nilnil // nothing to say
	}
	runs, err := c.Store.Find(ctx, journal.Query{Pool: c.Pool, Kind: journal.KindIssue, Since: time.Now().Add(-forecastFrom)})
	return forecast(runs, chain[0].Choice(), issues), err
}

// forecast multiplies the medians of the runs of an agent and model. It returns nil if there are none.
func forecast(runs []journal.Record, who agents.Choice, issues int) *forecastData {
	var used []agents.Usage
	var costs []float64
	for _, r := range runs {
		u := r.Facts.Usage
		if r.Agent != who.Agent || r.Model != who.Model || r.Ended.IsZero() || u == (agents.Usage{}) || supposed(r.Facts) {
			continue
		}
		used = append(used, u)
		if !journal.Costless(u) && (u.Estimated == 0 || u.Estimated < u.Tokens()) {
			costs = append(costs, u.CostUSD)
		}
	}
	if len(used) == 0 || issues == 0 {
		return nil
	}
	slices.SortFunc(used, func(x, y agents.Usage) int { return cmp.Compare(x.Tokens(), y.Tokens()) })
	each := used[len(used)/2]
	each.CostUSD, each.Estimated, each.Unpriced = 0, 0, each.Tokens()
	if len(costs) > 0 {
		slices.Sort(costs)
		each.CostUSD, each.Unpriced = costs[len(costs)/2], 0
	}
	f := &forecastData{Issues: issues, Agent: who.Agent, Model: who.Model, Runs: len(used), Unknown: len(used) - len(costs), Each: each}
	for range issues {
		f.All = f.All.Add(f.Each)
	}
	return f
}

// supposed reports that the usage of a run or of an iteration is only the estimate from the configuration.
func supposed(f journal.Facts) bool {
	none := func(u agents.Usage) bool {
		return u.Estimated > 0 && u.Estimated == u.Input && u.Output == 0 && u.CacheRead == 0 && u.CacheWrite == 0
	}
	return none(f.Usage) || slices.ContainsFunc(f.Iterations, func(i loop.Iteration) bool { return none(i.Usage) })
}

func (f forecastData) String() string {
	with := f.Agent
	if f.Model != "" {
		with += ", " + f.Model
	}
	lack := ""
	switch f.Unknown {
	case 0:
	case 1:
		lack = "; the cost of 1 is unknown"
	default:
		lack = fmt.Sprintf("; the cost of %d is unknown", f.Unknown)
	}
	return fmt.Sprintf("Expected cost: %s for %s, at %s each, the median of %s with %s%s.",
		look.CostText(f.All), screen.Plural(f.Issues, "issue"), look.CostText(f.Each), screen.Plural(f.Runs, "run"), screen.CleanLine(with), lack)
}
