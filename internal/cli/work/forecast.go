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

// forecastFrom is how far back runs are looked at: prices and habits change.
const forecastFrom = 90 * 24 * time.Hour

// forecastData is what working some issues may cost, by what earlier runs of the agent and model have used.
type forecastData struct {
	Issues int    `json:"issues"`
	Agent  string `json:"agent"`
	Model  string `json:"model,omitempty"`
	Runs   int    `json:"runs"` // earlier ones
	// Unknown is how many of these have no known cost.
	Unknown int `json:"runs_without_cost"`
	// Each has the median of their tokens, and of the costs that are known; without one all of it is unpriced.
	Each agents.Usage `json:"each"`
	All  agents.Usage `json:"all"`
}

// expected is what working so many issues may cost; nil where nothing is known.
func expected(ctx context.Context, c run.Config, issues int) (*forecastData, error) {
	chain := c.Chain(1)
	if len(chain) == 0 || issues == 0 {
		return nil, nil //nolint:nilnil // nothing to say
	}
	runs, err := c.Store.Find(ctx, journal.Query{Pool: c.Name, Kind: journal.KindIssue, Since: time.Now().Add(-forecastFrom)})
	return forecast(runs, chain[0].Choice(), issues), err
}

// forecast multiplies the medians of what runs of an agent and model have used; nil where none is known.
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

// supposed reports that nobody knows what a run has used, or an iteration of it: an amount from the configuration counts.
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
		lack = "; 1 has no known cost"
	default:
		lack = fmt.Sprintf("; %d have no known cost", f.Unknown)
	}
	return fmt.Sprintf("Expected cost: %s for %s, at %s each, the median of %s with %s%s.",
		look.CostText(f.All), screen.Plural(f.Issues, "issue"), look.CostText(f.Each), screen.Plural(f.Runs, "run"), screen.CleanLine(with), lack)
}
