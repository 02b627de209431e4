package compose

import (
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// Network returns the network policy of isolated runs: the hosts they may reach, and the upstream, prices and names of models.
func (a *App) Network(c config.Config) (gateway.Network, error) {
	prices, err := ledger.ParseOwn(c.Prices)
	if err != nil {
		return gateway.Network{}, exit.Usagef("prices: %w", err)
	}
	n := gateway.Network{User: a.User(), Upstream: c.AgentUpstream, Prices: prices, Models: c.AllowModels}
	for i, s := range slices.Concat(c.Allow, c.AllowPrivate) {
		r, err := egress.ParseRule(s)
		if err != nil {
			return n, exit.Usagef("allow: %w", err)
		}
		r.AllowPrivate = i >= len(c.Allow)
		n.Allow = append(n.Allow, r)
	}
	return n, nil
}
