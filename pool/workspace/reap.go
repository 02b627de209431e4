package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// End ends everything that a dead run has left running, including its checkouts. If the sandbox has a disk of its own, its files
// stay until they are imported, and opening the sandbox again ends its processes. It is not opened again if there is nothing to
// import.
func (c *Config) End(ctx context.Context, run string) error {
	if err := proc.KillParts(ctx, run); err != nil {
		return err
	}
	if c.EarlierProvider != nil {
		switch other, err := c.EarlierProvider(ctx, run); {
		case err != nil:
			return err
		case other != nil:
			if err := (&Config{Repo: c.Repo, Sandboxes: other}).endWithEarlierProvider(ctx, run); err != nil {
				return fmt.Errorf("run %s was in sandbox %s: %w", run, other.Name(), err)
			}
		}
	}
	trees, broken := c.Repo.Trees(ctx) // a broken record of another run is no reason to stop
	unsaved := broken != nil
	for _, t := range trees {
		s := t.Spec()
		if s.Run == run {
			unsaved = t.Unsaved()
		}
		if s.ParentRun == run {
			if err := c.Reap(ctx, s.Run); err != nil {
				return err
			}
		}
	}
	if !unsaved || !c.Copies() {
		return c.Reap(ctx, run)
	}
	return tempdir.RemoveRun(run)
}

// endWithEarlierProvider is End for a run that had another sandbox provider. Work that only that provider can import stays there.
func (c *Config) endWithEarlierProvider(ctx context.Context, run string) error {
	trees, _ := c.Repo.Trees(ctx) // End reports a broken record
	for _, t := range trees {
		if t.Spec().Run == run && t.Unsaved() && c.Copies() {
			return errors.New("it has work that is not imported, and only a run in that sandbox can import it")
		}
	}
	return c.End(ctx, run)
}

// Reap ends everything that a dead run has left running, and removes what its sandbox kept.
func (c *Config) Reap(ctx context.Context, run string) error { return c.reap(ctx, nil, run) }

// reap is Reap. Once the run that waits for it is asked to end, only a moment is left.
func (c *Config) reap(ctx context.Context, asked context.Context, run string) error {
	if err := proc.KillMarked(ctx, run); err != nil {
		return err
	}
	if reaper, ok := sandboxes.As[sandboxes.Reaper](c.Sandboxes); ok {
		timed, stop := context.WithTimeoutCause(ctx, closeLimit, errHanging)
		defer stop()
		limited, cancel := halt.Within(timed, halt.Grace(asked, halt.Moment))
		defer cancel()
		if _, err := awaitCall(limited, asked, "Reap", startCall(func() (any, error) { return nil, reaper.Reap(limited, run) })); err != nil {
			return err
		}
	}
	return tempdir.RemoveRun(run)
}

// errHanging is the cause that ends waiting for a sandbox that may have hung before. After it awaitCall gives up within a moment.
var errHanging = errors.New("the sandbox does not end")

// reap is Reap for the workspace's own sandboxes.
func (w *Workspace) reap(ctx context.Context) error { return w.c.reap(ctx, w.Asked, w.id) }

// reapLeft is Reap for a checkout that an earlier try may have left. It needs the record of the tree.
func (c *Config) reapLeft(ctx context.Context, id string) error {
	trees, err := c.Repo.Trees(ctx)
	if err == nil && !slices.ContainsFunc(trees, func(t *worktree.Tree) bool { return t.Spec().Run == id }) {
		return nil
	}
	return c.Reap(ctx, id)
}

// reapUnclosed ends a sandbox that was not closed, and removes the files of a broken one with a disk. It does not wait long for
// an engine that does not answer: Close has done that.
func (w *Workspace) reapUnclosed(ctx context.Context) error {
	if !w.Unclosed && !w.leftUnclosed && (!w.c.Copies() || w.Tree.Unsaved()) {
		return nil
	}
	w.Unclosed, w.leftUnclosed = true, false
	if w.Tree.Unsaved() && w.c.Copies() {
		return errors.New("it has work that is not imported")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, halt.KilledStageLimit, errHanging)
	defer cancel()
	err := w.reap(ctx)
	w.Unclosed = err != nil
	return err
}

// removeCheckout removes a checkout whose sandbox is shut; it removes the record last. If processes have a namespace or machine
// of their own, closing the sandbox has ended them all, but the disk of a broken one remains.
func (w *Workspace) removeCheckout(ctx context.Context) error {
	apart := []sandboxes.Isolation{sandboxes.Namespaces, sandboxes.Container, sandboxes.VM}
	if w.Unclosed || w.leftUnclosed || w.c.Copies() || !slices.Contains(apart, w.c.Sandboxes.Capabilities().Isolation) {
		if err := w.reap(ctx); err != nil {
			return err
		}
	}
	return w.Tree.Discard(ctx)
}

// Usable returns an error for a missing login, which every run would meet.
func (c *Config) Usable() error {
	err := c.checkLogin(c.Agents)
	if err == nil && c.Reviewer.Agent != nil {
		err = c.checkLogin(agents.Chain{c.Reviewer})
	}
	return err
}

// Missing returns, if there are several agents, those without a login; see Usable for a single one.
func (c *Config) Missing() (out []agents.Choice) {
	for _, l := range c.Agents {
		if len(c.Agents) > 1 && c.checkLogin(agents.Chain{l}) != nil {
			out = append(out, l.Choice())
		}
	}
	return out
}

// checkLogin returns nil if one of the agents can be used.
func (c *Config) checkLogin(chain agents.Chain) error {
	return gateway.Config{Provider: c.Sandboxes, Agents: chain, Network: c.Network}.Check()
}

// Clear abandons what other runs of the key have left, for example a process that hung until its claim expired. The caller has
// the claim now.
func (c *Config) Clear(ctx context.Context, key, run string) (notices []sandboxes.Notice, err error) {
	trees, _ := c.Repo.Trees(ctx) // a broken record of another key is no reason to stop
	for _, t := range trees {
		if s := t.Spec(); s.Key == key && s.Run != run && !s.Detached { // even with nothing unsaved its sandbox may still run
			more, failed := c.Abandon(ctx, t)
			notices, err = append(notices, more...), errors.Join(err, failed)
		}
	}
	return notices, err
}

// Abandon ends what is left of a run that no record knows, imports its work and removes its worktree. The error is about
// processes that may still run; notices are about work that stays.
func (c *Config) Abandon(ctx context.Context, tree *worktree.Tree) (notices []sandboxes.Notice, err error) {
	spec := tree.Spec()
	if spec.Detached {
		return nil, errors.Join(c.Reap(ctx, spec.Run), tree.Discard(ctx))
	}
	if err := c.End(ctx, spec.Run); err != nil {
		return nil, err
	}
	w := c.New(spec.Run, tree, nil, nil)
	if notices = w.Close(ctx, false); w.Unclosed && !tree.Unsaved() { // otherwise the worktree stays, as unfinished
		err = fmt.Errorf("the sandbox that has imported the work of run %s does not end", spec.Run)
	}
	return notices, err
}
