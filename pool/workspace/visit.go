package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/worktree"
)

// Visit is a checkout that the guest looks at, in a sandbox of its own. Nothing is imported from it.
type Visit struct {
	Run     string // that it serves
	Name    string // tells it from the run's other checkouts
	Key     string
	Base    worktree.Base // Commit is what is checked out
	From    string        // the base's commit, which that one is or builds on
	Facts   []string      // what every command finds in its environment
	Refused func(egress.Event)
	Warn    func(sandboxes.Notice) // told what the guest's sandbox and its model service have to say at the end
}

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

// Visit makes the checkout, opens the guest's sandbox over it, and removes both when look has returned. The sandbox shows
// the checkout read-only where it can. What the guest uses is counted in a meter of its own.
func (c *Config) Visit(ctx context.Context, v Visit, look func(context.Context, *Workspace) error) (err error) {
	id := v.Run + "-" + v.Name
	if err := c.reapLeft(ctx, id); err != nil {
		return err
	}
	defer c.Begin(id)()
	tree, err := c.Repo.Add(ctx, worktree.Spec{
		Run: id, Of: v.Run, Key: v.Key, Base: v.Base, From: v.From, Detached: true, Private: c.Private(), Layers: c.Layers(),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", v.Name, err)
	}
	w := c.New(id, tree, v.Facts, v.Refused)
	w.agents, w.look = agents.Chain{c.Guest}, true
	w.Meter = c.meterBeside(v.Run)
	defer w.Forget()
	defer func() {
		after, cancel := Hurried(ctx)
		defer cancel()
		for _, n := range w.Shut(after) {
			v.Warn(n)
		}
		err = errors.Join(err, w.drop(after))
	}()
	if err := w.Open(ctx); err != nil {
		return fmt.Errorf("%s: %w", v.Name, err)
	}
	return look(ctx, w)
}
