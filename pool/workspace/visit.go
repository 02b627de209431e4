package workspace

import (
	"context"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Count counts what was used for a run that is on, so that it keeps its budget with it, and the part of it that only an
// agent reports.
func (c *Config) Count(run string, used, unseen agents.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.meters[run]; m != nil {
		m.Add(used, unseen)
	}
}

// meterBeside makes a meter for a run that has one already.
func (c *Config) meterBeside(run string) *gateway.Meter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return gateway.NewMeter(c.Network, run).Beside(c.meters[run])
}

// Visit makes a checkout without checks, opens the guest's sandbox over it, and removes both when look has returned. Nothing is
// imported from it. The sandbox shows the checkout read-only where it can. What the guest uses is counted in a meter of its own.
// told is what the sandbox and the guest's model service have to say at the end.
func (c *Config) Visit(ctx context.Context, o Checkout, look func(context.Context, *Workspace) error) (told []sandboxes.Notice, err error) {
	o.guest = true
	return c.inCheckout(ctx, o, look)
}
