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

// sayForecast says what working so many issues may cost.
func (a *app) sayForecast(ctx context.Context, c run.Config, issues int) error {
	if c.Agent == nil || issues == 0 {
		return nil
	}
	runs, err := c.Store.Find(ctx, journal.Query{Pool: c.Name, Kind: journal.KindIssue, Since: time.Now().Add(-forecastFrom)})
	if err != nil {
		return err
	}
	if line := forecast(runs, c.Agent.Name(), c.Options.Model, issues); line != "" {
		a.ui.printf("\n%s\n", line)
	}
	return nil
}

// forecast multiplies the median of what runs of an agent and model have used; empty where none is known.
func forecast(runs []journal.Record, agent, model string, issues int) string {
	var used []agents.Usage
	for _, r := range runs {
		if r.Agent == agent && r.Model == model && !r.Ended.IsZero() && r.Facts.Usage != (agents.Usage{}) {
			used = append(used, r.Facts.Usage)
		}
	}
	if len(used) == 0 || issues == 0 {
		return ""
	}
	slices.SortFunc(used, func(x, y agents.Usage) int {
		return cmp.Or(cmp.Compare(x.CostUSD, y.CostUSD), cmp.Compare(tokens(x), tokens(y)))
	})
	one, all := used[len(used)/2], agents.Usage{}
	for range issues {
		all = all.Add(one)
	}
	with := agent
	if model != "" {
		with += ", " + model
	}
	return fmt.Sprintf("Expected cost: %s for %s, at %s each, the median of %s with %s.",
		cost(all), plural(issues, "issue"), cost(one), plural(len(used), "run"), cleanLine(with))
}
