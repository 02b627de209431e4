package engine

import (
	"context"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// EndLimit is how long the end of a process tree, or of a sandbox, may take before something is wrong.
const EndLimit = 20 * time.Second

// Client is the engine's client process of one command. It does not end with the caller's context: first the command inside
// has to end, which the functions below ask for. They may not block for long.
type Client struct {
	Ended     <-chan error    // gives how the client ended
	Reported  <-chan struct{} // closed when the end of the command has been reported; nil: no report comes before Ended
	Terminate func()
	Kill      func()
	Dismiss   func() // called after the report: the client has no more to do
	GiveUp    func() // called when the client does not end in time

	Limit time.Duration // that time; zero means EndLimit
}

// Steer passes on every reason to end the command, and returns when the client has ended.
func (c Client) Steer(ctx context.Context, cmd sandboxes.Command) error {
	if c.Limit <= 0 {
		c.Limit = EndLimit
	}
	reported, interrupt, over := c.Reported, cmd.Interrupt, ctx.Done()
	var grace, limit <-chan time.Time
	for {
		select {
		case err := <-c.Ended:
			return err
		case <-reported:
			reported, interrupt, over, grace = nil, nil, nil, nil
			c.Dismiss()
			limit = time.After(c.Limit)
		case <-interrupt:
			interrupt = nil
			c.Terminate()
			d := cmd.Grace
			if d <= 0 {
				d = proc.DefaultGrace
			}
			grace = time.After(d)
		case <-grace:
			grace = nil
			c.Kill()
			limit = time.After(c.Limit)
		case <-over:
			over, interrupt, grace = nil, nil, nil
			c.Kill()
			limit = time.After(c.Limit)
		case <-limit:
			limit = nil
			c.GiveUp()
		}
	}
}
