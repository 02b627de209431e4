package config

import (
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Unpriced lists only agents that state no cost, if their model has no price and ralph does not measure their usage.
func TestUnpriced(t *testing.T) {
	t.Parallel()
	own, err := ledger.ParseOwn([]string{"mine=2/10"})
	if err != nil {
		t.Fatal(err)
	}
	codex := func(model string) agents.Link {
		return agents.Link{Agent: agents.Codex{}, Options: agents.Options{Model: model}}
	}
	c := Config{
		Agent: agents.Codex{}, Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}), Network: gateway.Network{Prices: own},
		Fallback: agents.Chain{codex("gpt-5.5"), codex("mine"), codex("unheard-of"), {Agent: agents.Claude{}}, {Agent: agents.Command{}}},
	}
	c.Review.Agent = agents.Codex{}
	want := []agents.Choice{{Agent: "codex"}, {Agent: "codex", Model: "unheard-of"}}
	if got := c.Unpriced(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	c.Sandboxes = proxied{c.Sandboxes}
	if got := c.Unpriced(); len(got) > 0 {
		t.Errorf("behind ralph's proxy: %v", got)
	}
}

// The cost of tokens is their model's price, or the estimate's cost if there is a limit in US dollars; otherwise it is unknown.
func TestPriced(t *testing.T) {
	t.Parallel()
	c := Config{Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{})}
	limited := c
	limited.Budget.CostUSD, limited.Estimate.CostUSD = 9, 1.5
	many := agents.Usage{Input: 1_000_000, Output: 100_000} // many requests together do not count as a long one
	with := func(usd float64, estimated, unpriced int64) agents.Usage {
		u := many
		u.CostUSD, u.Estimated, u.Unpriced = usd, estimated, unpriced
		return u
	}
	for name, x := range map[string]struct{ got, want agents.Usage }{
		"its price":             {limited.Priced(agents.Codex{}, "gpt-5.5", many), with(8, 0, 0)},
		"no price, a limit":     {limited.Priced(agents.Codex{}, "", many), with(1.5, 1_100_000, 0)},
		"no price and no limit": {c.Priced(agents.Codex{}, "unheard-of", many), with(0, 0, 1_100_000)},
	} {
		if x.got != x.want {
			t.Errorf("%s: %+v, want %+v", name, x.got, x.want)
		}
	}
}

// proxied is a sandbox with ralph's proxy.
type proxied struct{ sandboxes.Provider }

func (proxied) Capabilities() sandboxes.Capabilities { return sandboxes.Capabilities{Egress: true} }
