package engine

import (
	"context"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// EndLimit is the time limit for the end of a process tree or a sandbox.
const EndLimit = 20 * time.Second

// Client controls the engine's client process of one command. The process does not end with the caller's context: the
// command inside must end first, which the functions below request. They must not block for long.
type Client struct {
	Ended     <-chan error    // receives the result of the client
	Reported  <-chan struct{} // closed when the command's end was reported; nil: Ended comes first
	Terminate func()
	Kill      func()
	Dismiss   func() // called after the report: the client is no longer needed
	GiveUp    func() // called when the client does not end within Limit

	Limit time.Duration // zero means EndLimit
}

// Steer forwards every reason to end the command, and returns when the client has ended.
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
