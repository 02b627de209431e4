package config

import (
	"cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// Estimated is what counts for an iteration where nobody says what it used: nothing where nothing is limited, and no cost where
// only tokens are.
func (c Config) Estimated() loop.Budget {
	limits := []loop.Budget{c.Budget, c.Iteration, c.Caps.Day, c.Caps.Month}
	for _, share := range c.Shares {
		limits = append(limits, share)
	}
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

// EstimateOf is what counts for an iteration of one agent where nobody says what it used: nothing where ralph reads that itself.
func (c Config) EstimateOf(a agents.Agent) loop.Budget {
	if gateway.Counts(a, c.Sandboxes.Capabilities()) {
		return loop.Budget{}
	}
	return c.Estimated()
}

// Uncounted are the agents, the reviewer among them, of which nobody can say what they use: neither their output nor ralph.
func (c Config) Uncounted() (list []agents.Agent) {
	all := c.Agents()
	if c.Review.Agent != nil {
		all = append(all, agents.Link{Agent: c.Review.Agent})
	}
	seen := map[string]bool{}
	for _, l := range all {
		name := l.Agent.Name()
		if l.Agent.Describe().NoUsage && !gateway.Counts(l.Agent, c.Sandboxes.Capabilities()) && !seen[name] {
			list, seen[name] = append(list, l.Agent), true
		}
	}
	return list
}
