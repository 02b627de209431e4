package look

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/fleetdb"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// totals sums all runs of the repository on this host, or in its fleet.
type totals struct {
	Usage          agents.Usage `json:"usage"`
	Unknown        int          `json:"runs_without_cost"`
	Running        int          `json:"running"`
	RunningSeconds float64      `json:"running_seconds"`
}

func totalsOf(ctx context.Context, a *compose.App, p *compose.Parts, o fleetdb.Member, states []RunState, now time.Time) (t totals, err error) {
	var running []journal.Record
	for _, s := range states {
		if s.State == "running" {
			running = append(running, s.Record)
		}
	}
	all := journal.Store(p.Journal)
	database, name, err := fleetdb.OpenProject(ctx, a, p, o)
	if err != nil {
		return t, err
	}
	if database != nil {
		defer database.Close()
		all = database.Runs(name)
		if running, err = database.Running(ctx, name); err != nil {
			return t, err
		}
	}
	for _, r := range running {
		t.Running++
		t.RunningSeconds += r.DurationUntil(now).Seconds()
	}
	spent, err := spentSince(ctx, all, time.Time{})
	t.Usage, t.Unknown = spent.Usage, spent.Unknown
	return t, err
}

// spentSince returns what runs have spent since a time, as caps count it. Estimated, Unpriced and Unknown only cover runs that
// began since then.
func spentSince(ctx context.Context, all journal.Store, since time.Time) (s ledger.Spend, err error) {
	if s.Usage, _, err = all.Spent(ctx, "", since, since); err != nil {
		return s, err
	}
	adds, ok := all.(journal.Totals)
	if !ok {
		return s, nil
	}
	list, err := adds.Totals(ctx, "", since)
	for _, t := range list {
		s.Estimated, s.Unpriced, s.Unknown = s.Estimated+t.Usage.Estimated, s.Unpriced+t.Usage.Unpriced, s.Unknown+t.Unknown
	}
	return s, err
}

// capState is a limit, and the rest of it.
type capState struct {
	Of    string        `json:"of"`              // "day" or "month" for all runs together, "issue", "run", "iteration", or "agent" within one run
	Agent string        `json:"agent,omitempty"` // for "agent": its name and model
	Cap   loop.Budget   `json:"cap"`
	Spent *agents.Usage `json:"spent,omitempty"`
	// Unknown is the number of runs whose cost is not, or only partly, known.
	Unknown int `json:"runs_without_cost,omitempty"`
	// The rest of the limit; nil: no limit.
	LeftTokens *int64    `json:"left_tokens,omitempty"`
	LeftUSD    *float64  `json:"left_usd,omitempty"`
	Until      time.Time `json:"until,omitzero"` // the end of the period
}

// capStates returns the configured limits. Spent is only known for those of all runs together.
func capStates(ctx context.Context, p *compose.Parts, now time.Time) ([]capState, error) {
	list, all := []capState{}, compose.Caps(p.Config)
	for _, of := range []struct {
		period       string
		limit        loop.Budget
		since, until time.Time
	}{
		{"day", all.Day, ledger.DayOf(now), ledger.DayOf(now).AddDate(0, 0, 1)},
		{"month", all.Month, ledger.MonthOf(now), ledger.MonthOf(now).AddDate(0, 1, 0)},
	} {
		if of.limit == (loop.Budget{}) {
			continue
		}
		spent, err := spentSince(ctx, p.Journal, of.since)
		if err != nil {
			return nil, err
		}
		c := newCapState(of.period, of.limit, spent.Usage)
		c.Spent, c.Unknown, c.Until = &spent.Usage, spent.Unknown, of.until
		list = append(list, c)
	}
	for _, of := range []struct {
		name  string
		limit loop.Budget
	}{
		{"issue", loop.Budget{Tokens: p.BudgetTokens, CostUSD: p.BudgetUSD}},
		{"run", loop.Budget{Tokens: p.BudgetTokensRun, CostUSD: p.BudgetUSDRun}},
		{"iteration", loop.Budget{Tokens: p.BudgetTokensIteration, CostUSD: p.BudgetUSDIteration}},
	} {
		if of.limit != (loop.Budget{}) {
			list = append(list, newCapState(of.name, of.limit, agents.Usage{}))
		}
	}
	shares, err := ledger.ParseShares(p.BudgetAgents)
	for choice, limit := range shares {
		c := newCapState("agent", limit, agents.Usage{})
		c.Agent = choice.String()
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(x, y capState) int { return cmp.Compare(x.Agent, y.Agent) })
	return list, err
}

func newCapState(of string, limit loop.Budget, spent agents.Usage) capState {
	c := capState{Of: of, Cap: limit}
	if limit.Tokens > 0 {
		c.LeftTokens = new(max(0, limit.Tokens-spent.Tokens()))
	}
	if limit.CostUSD > 0 {
		c.LeftUSD = new(max(0, limit.CostUSD-spent.CostUSD))
	}
	return c
}

// printCaps prints how much of the limits for all runs together is spent.
func printCaps(a *compose.App, list []capState) {
	for _, c := range list {
		if c.Spent == nil {
			continue
		}
		var parts []string
		if c.Cap.CostUSD > 0 {
			spent := ledger.Spend{Usage: *c.Spent, Unknown: c.Unknown}
			parts = append(parts, fmt.Sprintf("%s of %s", spent.Amount(), ledger.USD(c.Cap.CostUSD)))
		}
		if c.Cap.Tokens > 0 {
			parts = append(parts, fmt.Sprintf("%s of %s tokens", ledger.Count(c.Spent.Tokens()), ledger.Count(c.Cap.Tokens)))
		}
		full := ""
		if c.Cap.Exhausted(*c.Spent) {
			full = "; no new run starts"
		}
		period := map[string]string{"day": "today", "month": "this month"}[c.Of]
		a.UI.Printf("Spent %s (UTC): %s%s.\n", period, strings.Join(parts, ", "), full)
	}
}
