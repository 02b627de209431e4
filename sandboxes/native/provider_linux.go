package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// openLimit is how long a sandbox may take to open; usually it takes hundredths of a second.
const openLimit = 30 * time.Second

// Provider is the provider "native".
type Provider struct {
	show    []string
	path    string
	places  func() cgroup.Places // tried out once
	mappers mappers
}

// New returns the provider. Nothing is looked at or made before it is used.
func New(c Config) *Provider {
	path := c.Path
	if path == "" {
		path = os.Getenv("PATH")
	}
	return &Provider{show: slices.Clone(c.Show), path: path, places: sync.OnceValue(cgroup.Find)}
}

// Capabilities says what this host lets the provider do.
func (p *Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{
		Files: sandboxes.Bind, Isolation: sandboxes.Namespaces, Egress: true, Secrets: true, Limits: p.Enforcement().all(),
	}
}

// Enforcement says how each limit is held on this host.
func (p *Provider) Enforcement() Enforcement {
	by := func(controller, otherwise string) string {
		at, ok := p.places()[controller]
		switch {
		case !ok:
			return otherwise
		case at.V2:
			return "control group v2"
		}
		return "control group v1"
	}
	const watched = "looked at every 50 ms"
	return Enforcement{
		Memory: by("memory", watched), CPUs: by("cpu", ""), PIDs: by("pids", "resource limit and "+watched),
		Disk: "size of the scratch file system",
	}
}

// all reports whether every limit holds.
func (e Enforcement) all() bool {
	return e.Memory != "" && e.CPUs != "" && e.PIDs != "" && e.Disk != ""
}

// Check opens a sandbox and closes it again. The error is one line that says what is missing and what mends it.
func (p *Provider) Check(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	dir, remove, err := tempdir.Held("ralph-check-")
	if err != nil {
		return fmt.Errorf("check sandbox native: %w", err)
	}
	defer func() { _ = remove() }()
	box, err := p.Open(ctx, sandboxes.Spec{Run: "check-" + dir, Worktree: dir})
	if err != nil {
		return err
	}
	return box.Close(ctx)
}

// Open makes a sandbox.
func (p *Provider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s, err := p.open(ctx, spec)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("open sandbox native: %w", err)
	}
	return s, nil
}

func (p *Provider) open(ctx context.Context, spec sandboxes.Spec) (box *sandbox, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, openLimit, fmt.Errorf("it is not ready after %s", openLimit))
	defer cancel()
	out, err := p.newPlan(spec)
	if err != nil {
		return nil, err
	}
	who, err := identify(out)
	if err != nil {
		return nil, err
	}
	out.Assume = who.root
	given, err := p.mapOwners(out, who)
	if err != nil {
		return nil, diagnose(err)
	}
	defer closeAll(given)
	f, err := startFirst(out.Run, who)
	if err != nil {
		return nil, diagnose(err)
	}
	var g *cgroup.Group
	defer func() {
		if err != nil {
			err = errors.Join(err, f.kill(context.WithoutCancel(ctx)), g.Remove(context.WithoutCancel(ctx)))
		}
	}()
	l := withDefaults(spec.Limits)
	if g, err = p.places().Make(out.Run, cgroup.Limits{Memory: l.Memory, CPUs: l.CPUs, PIDs: l.PIDs}); err != nil {
		return nil, err
	}
	if err := cgroup.Enter(g.Dirs(), f.process.Pid); err != nil {
		return nil, err
	}
	out.WatchMemory, out.WatchPIDs = !g.Holds("memory"), !g.Holds("pids")
	if err := f.handOver(limited, out, given); err != nil {
		return nil, diagnose(err)
	}
	env := baseEnv(out.path(p.path))
	if spec.Egress != "" {
		env = append(env, egress.Env()...)
	}
	env = append(env, "PWD="+out.Worktree)
	return newSandbox(f, g, out, append(env, spec.Env...), who), nil
}

// Reap ends what a crashed ralph has left of a run.
func (p *Provider) Reap(ctx context.Context, run string) error {
	if run == "" {
		return errors.New("reap sandbox native: the run has no id")
	}
	if err := killFirsts(ctx, run); err != nil {
		return fmt.Errorf("reap sandbox native: %w", err)
	}
	if err := cgroup.Reap(ctx, run); err != nil {
		return fmt.Errorf("reap sandbox native: %w", err)
	}
	return nil
}
