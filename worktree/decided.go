package worktree

import (
	"context"
	"encoding/json"
	"fmt"
)

// Decided is what a claim says once its run has come to an end of which people have not been told yet. Whoever takes
// the claim over, from another clone and without any other record of the run, can do what is left instead of working
// the issue again.
type Decided struct {
	Done Done            `json:"done"` // for Finish
	Rest json.RawMessage `json:"rest"` // what is left to do, in the caller's words
}

// Decide writes the run's end into the claim, and renews it. It fails as Renew does; then the claim may say it or not.
// The claim goes on to say it until Finish.
func (c *Claim) Decide(ctx context.Context, d Decided) error {
	if d.Done.Run == "" {
		return fmt.Errorf("decide claim %s: no run", c.key)
	}
	c.mu.Lock()
	c.decided = &d
	c.mu.Unlock()
	return c.Renew(ctx)
}

// Decided is what the claim says of a run that has come to its end; ok is false when it says nothing.
func (c *Claim) Decided() (d Decided, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decided == nil {
		return Decided{}, false
	}
	return *c.decided, true
}
