// Package workspace provides the places in which the commands of a run execute: a worktree with a sandbox around it, clean
// checkouts for the checks, and a checkout of the base for the user's host commands. Package pool/run decides what runs there,
// and when. It is a part of package pool, and not for other programs.
package workspace

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/workspace/homes"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/worktree"
)

// Config is shared by all workspaces of a runner. Its exported fields must not change after the first use; then it is safe for
// concurrent use.
type Config struct {
	Repo            *worktree.Repo
	Agents          agents.Chain // empty: none is started
	Reviewer        agents.Link  // the agent that reviews the work; without an Agent there is no review
	Sandboxes       sandboxes.Provider
	EarlierProvider func(ctx context.Context, run string) (sandboxes.Provider, error) // the provider of an earlier run, if it was another one; may be nil
	Env             []string                                                          // for every command in the sandbox
	Network         gateway.Network
	Limits          sandboxes.Limits
	Mounts          []sandboxes.Mount
	Before          []string     // the user's host commands
	Homes           *homes.Store // nil: every home is empty
	Timers          loop.Timers
	Secrets         *redact.Secrets
	Limited         func(agent string) // see gateway.Config; may be nil
	Disk            *disk.Guard        // nil: disks are not watched
	Log             *slog.Logger
	StopGrace       time.Duration // for a sandbox to open or close after its run was asked to end

	mu     sync.Mutex
	meters map[string]*gateway.Meter // of the runs in progress; guarded by mu
}

// sharedPlace is the path of the worktree in every sandbox: the caches of many tools contain paths.
const sharedPlace = "/worktree"

// workdir returns the path at which the sandbox should show the worktree; empty: its path on the host.
func (c *Config) workdir() string {
	for _, m := range c.Mounts {
		if m.Inside == sharedPlace || strings.HasPrefix(m.Inside, sharedPlace+"/") {
			return "" // the user has mounted something there
		}
	}
	return sharedPlace
}

// New returns a workspace for a run over a tree; nil means the user's checkout. facts are added to the environment of every
// command. refused, which may be nil, is called for each refused connection. Nothing is open yet.
func (c *Config) New(run string, tree *worktree.Tree, facts []string, refused func(egress.Event)) *Workspace {
	w := &Workspace{
		c:       c,
		id:      run,
		agents:  c.Agents,
		Dir:     c.Repo.Dir(),
		Tree:    tree,
		runEnv:  facts,
		Asked:   context.Background(),
		refused: refused,
		Meter:   gateway.NewMeter(c.Network, run),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.meters == nil {
		c.meters = map[string]*gateway.Meter{}
	}
	c.meters[run] = w.Meter
	if tree != nil {
		w.Dir = tree.Dir()
	}
	return w
}

// Begin starts what the sandbox of a run needs while its files are made. done ends it unless a sandbox has taken it over.
func (c *Config) Begin(run string) (done func()) {
	if s, ok := sandboxes.As[sandboxes.Starter](c.Sandboxes); ok {
		return s.Start(run)
	}
	return func() {}
}

// shareMeter makes the workspace use the meter of the run that it belongs to, and so that run's budget.
func (w *Workspace) shareMeter(run string) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if m := w.c.meters[run]; m != nil {
		w.Meter = m
	}
}

// Private reports whether the sandbox shows a private repository of the run.
func (c *Config) Private() bool { return c.Sandboxes.Capabilities().Files != sandboxes.InPlace }

// Copies reports whether the sandbox has a disk of its own, so that changes of its files do not reach the worktree on the host.
func (c *Config) Copies() bool { return c.Sandboxes.Capabilities().Files == sandboxes.Copy }

// Environ returns the agents' environment if they commit with the user's own git configuration; otherwise nil. A provider without
// a method Environ counts as one that hides nothing.
func (c *Config) Environ() []string {
	if c.Private() {
		return nil
	}
	env := os.Environ()
	if p, ok := sandboxes.As[interface{ Environ() []string }](c.Sandboxes); ok { // None, or what decorates it
		env = p.Environ()
	}
	env = append(env, c.Env...)
	for _, l := range c.Agents {
		env = append(env, l.Options.Env...)
	}
	return env
}

// Layers returns a function that tries whether the sandbox can show a tree over a layer; nil: it cannot.
func (c *Config) Layers() func(ctx context.Context, dir string) error {
	if l, ok := sandboxes.As[sandboxes.Layerer](c.Sandboxes); ok {
		return l.Layers
	}
	return nil
}
