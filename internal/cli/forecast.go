package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
)

// forecastFrom is how far back runs are looked at: prices and habits change.
const forecastFrom = 90 * 24 * time.Hour

// forecastData is what working some issues may cost: the median of what earlier runs of the agent and model have used, for each.
type forecastData struct {
	Issues int          `json:"issues"`
	Agent  string       `json:"agent"`
	Model  string       `json:"model,omitempty"`
	Runs   int          `json:"runs"` // earlier ones
	Each   agents.Usage `json:"each"`
	All    agents.Usage `json:"all"`
}

// forecast is what working so many issues may cost; nil where nothing is known.
func (a *app) forecast(ctx context.Context, c run.Config, issues int) (*forecastData, error) {
	chain := c.Chain(1)
	if len(chain) == 0 || issues == 0 {
		return nil, nil //nolint:nilnil // nothing to say
	}
	runs, err := c.Store.Find(ctx, journal.Query{Pool: c.Name, Kind: journal.KindIssue, Since: time.Now().Add(-forecastFrom)})
	return forecast(runs, chain[0].Choice(), issues), err
}

// forecast multiplies the median of what runs of an agent and model have used; nil where none is known.
func forecast(runs []journal.Record, who agents.Choice, issues int) *forecastData {
	var used []agents.Usage
	for _, r := range runs {
		if r.Agent == who.Agent && r.Model == who.Model && !r.Ended.IsZero() && r.Facts.Usage != (agents.Usage{}) {
			used = append(used, r.Facts.Usage)
		}
	}
	if len(used) == 0 || issues == 0 {
		return nil
	}
	slices.SortFunc(used, func(x, y agents.Usage) int {
		return cmp.Or(cmp.Compare(x.CostUSD, y.CostUSD), cmp.Compare(x.Tokens(), y.Tokens()))
	})
	f := &forecastData{Issues: issues, Agent: who.Agent, Model: who.Model, Runs: len(used), Each: used[len(used)/2]}
	for range issues {
		f.All = f.All.Add(f.Each)
	}
	return f
}

func (f forecastData) String() string {
	with := f.Agent
	if f.Model != "" {
		with += ", " + f.Model
	}
	return fmt.Sprintf("Expected cost: %s for %s, at %s each, the median of %s with %s.",
		cost(f.All), plural(f.Issues, "issue"), cost(f.Each), plural(f.Runs, "run"), cleanLine(with))
}
