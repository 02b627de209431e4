package config

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// Estimated returns the usage that counts for an iteration when nobody reports it. Without any limit it is zero; without a limit
// on cost it has no cost.
func (c Config) Estimated() loop.Budget {
	limits := []loop.Budget{c.Budget, c.PerRun, c.Iteration, c.Caps.Day, c.Caps.Month}
	limits = slices.AppendSeq(limits, maps.Values(c.Shares))
	var limited loop.Budget
	for _, l := range limits {
		limited.Tokens, limited.CostUSD = max(limited.Tokens, l.Tokens), max(limited.CostUSD, l.CostUSD)
	}
	if limited == (loop.Budget{}) {
		return loop.Budget{}
	}
	usual := ledger.DefaultEstimate()
	e := loop.Budget{Tokens: cmp.Or(c.Estimate.Tokens, usual.Tokens)}
	if limited.CostUSD > 0 {
		e.CostUSD = cmp.Or(c.Estimate.CostUSD, usual.CostUSD)
	}
	return e
}

// EstimateOf is Estimated for one agent. It is zero if ralph measures the agent's usage itself.
func (c Config) EstimateOf(a agents.Agent) loop.Budget {
	if c.Watched(a) {
		return loop.Budget{}
	}
	return c.Estimated()
}

// Watched reports whether all requests of the agent to its service pass through ralph.
func (c Config) Watched(a agents.Agent) bool { return gateway.Counts(a, c.Sandboxes.Capabilities()) }

// LargestEstimate returns the largest estimate of any agent that may work an issue.
func (c Config) LargestEstimate() (most loop.Budget) {
	for _, l := range c.Agents() {
		e := c.EstimateOf(l.Agent)
		most.Tokens, most.CostUSD = max(most.Tokens, e.Tokens), max(most.CostUSD, e.CostUSD)
	}
	return most
}

// Priced adds the cost of an agent's tokens: by the price of its model, else by the estimate. Otherwise the tokens count as
// unpriced.
func (c Config) Priced(a agents.Agent, model string, u agents.Usage) agents.Usage {
	usd, known := c.price(model, u)
	switch e := c.EstimateOf(a); {
	case known:
		u.CostUSD = usd
	case e.CostUSD > 0:
		u.CostUSD, u.Estimated = e.CostUSD, u.Tokens()
	default:
		u.Unpriced = u.Tokens()
	}
	return u
}

// price returns the cost of a model's tokens. They come from many requests, so it takes none for a long one.
func (c Config) price(model string, u agents.Usage) (usd float64, known bool) {
	price, known := ledger.Builtin().With(c.Network.Prices).Of(model)
	if !known {
		return 0, false
	}
	price.Long = nil
	return price.Cost(u, ledger.Terms{})
}

// Uncounted returns the agents whose usage neither their output nor ralph can state.
func (c Config) Uncounted() (list []agents.Agent) {
	seen := map[string]bool{}
	for _, l := range c.trusted() {
		if name := l.Agent.Name(); l.Agent.Describe().NoUsage && !seen[name] {
			list, seen[name] = append(list, l.Agent), true
		}
	}
	return list
}

// Unpriced returns the agents that state tokens but no cost and use a model without a known price.
func (c Config) Unpriced() (list []agents.Choice) {
	for _, l := range c.trusted() {
		_, known := c.price(l.Options.Model, agents.Usage{})
		if who := l.Choice(); l.Agent.Describe().NoCost && !known && !slices.Contains(list, who) {
			list = append(list, who)
		}
	}
	return list
}

// trusted returns the agents, including the reviewer, whose own statement of usage counts, because ralph does not measure it.
func (c Config) trusted() agents.Chain {
	all := slices.Clone(c.Agents())
	if c.Review.Agent != nil {
		all = append(all, agents.Link{Agent: c.Review.Agent, Options: c.Review.Options})
	}
	return slices.DeleteFunc(all, func(l agents.Link) bool { return c.Watched(l.Agent) })
}
