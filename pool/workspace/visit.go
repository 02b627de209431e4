package workspace

import (
	"context"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Count adds usage to the meter of a run in progress, so that the run keeps its budget. unseen is the part of it that only an
// agent reports.
func (c *Config) Count(run string, used, unseen agents.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.meters[run]; m != nil {
		m.Add(used, unseen)
	}
}

// meterBeside returns a second meter for a run.
func (c *Config) meterBeside(run string) *gateway.Meter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return gateway.NewMeter(c.Network, run).IncludeMeter(c.meters[run])
}

// Visit makes a checkout without checks, opens the reviewer's sandbox over it, and removes both when look has returned. It
// imports nothing. The sandbox shows the checkout read-only if it can. A separate meter counts what the reviewer uses. The
// notices are the final ones of the sandbox and of the reviewer's model service.
func (c *Config) Visit(ctx context.Context, o Checkout, look func(context.Context, *Workspace) error) (notices []sandboxes.Notice, err error) {
	o.forReviewer = true
	return c.inCheckout(ctx, o, look)
}
