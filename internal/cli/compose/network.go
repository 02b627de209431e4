package compose

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/reach"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// Network is what isolated runs may reach.
func (a *App) Network(c config.Config) (gateway.Network, error) {
	prices, err := ledger.ParseOwn(c.Prices)
	if err != nil {
		return gateway.Network{}, &exit.Error{Status: exit.Usage, Err: fmt.Errorf("prices: %w", err)}
	}
	n := gateway.Network{User: a.User(), Upstream: c.AgentUpstream, Prices: prices}
	for i, s := range slices.Concat(c.Allow, c.AllowPrivate) {
		r, err := egress.ParseRule(s)
		if err != nil {
			return n, &exit.Error{Status: exit.Usage, Err: fmt.Errorf("allow: %w", err)}
		}
		r.AllowPrivate = i >= len(c.Allow)
		n.Allow = append(n.Allow, r)
	}
	return n, nil
}

// PrivateHost reports whether the host, as far as can be seen now, is on this host or a private network.
func PrivateHost(ctx context.Context, host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return reach.Of(addr) == reach.Private
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err == nil && len(found) > 0 && !slices.ContainsFunc(found, func(a netip.Addr) bool { return reach.Of(a) != reach.Private })
}
