package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// allNamespaces are the namespaces of a sandbox.
const allNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

var _ sandboxes.Starter = (*Provider)(nil)

// Provider is the provider "native".
type Provider struct {
	show         []string
	places       func() cgroup.Places // found at the first use
	mappers      mappers
	layers       layers
	startedInits sync.Map // by run: the *supervisor.Client of a sandbox that is not open yet
}

// New returns the provider. It does nothing on the host before it is used.
func New(c Config) *Provider {
	return &Provider{show: slices.Clone(c.Show), places: sync.OnceValue(cgroup.Find)}
}

// Capabilities returns the provider's capabilities on this host.
func (p *Provider) Capabilities() sandboxes.Capabilities {
	_, limited := p.places()["cpu"] // polling limits memory and processes where control groups do not
	c := sandboxes.Capabilities{
		Files: sandboxes.Bind, Isolation: sandboxes.Namespaces, Egress: true, Secrets: true, Limits: limited, Home: true,
	}
	if _, ok := p.places()["memory"]; !ok {
		c.Weaker = "no control group can be made here, so the memory limit only watches processes: " +
			"the kernel's memory for sockets and pipes is not limited"
	}
	return c
}

// Check runs a command in a sandbox. The error is one line that names what is missing and the fix.
func (p *Provider) Check(ctx context.Context) error { return supervisor.Try(ctx, p) }

// Start starts the init process of a run's next sandbox.
func (p *Provider) Start(run string) (done func()) {
	c, err := p.initProcess(run)
	if err != nil {
		return func() {} // Open reports the error
	}
	if other, taken := p.startedInits.Swap(run, c); taken {
		_ = other.(*supervisor.Client).Kill(context.Background())
	}
	return func() {
		if p.startedInits.CompareAndDelete(run, c) {
			_ = c.Kill(context.Background()) // fails only when ctx ends
		}
	}
}

// initProcess returns the init process of a run's next sandbox, which waits for its plan.
func (p *Provider) initProcess(run string) (*supervisor.Client, error) {
	if started, ok := p.startedInits.LoadAndDelete(run); ok {
		c := started.(*supervisor.Client)
		if !c.Ended() {
			return c, nil
		}
		_ = c.Kill(context.Background()) // it has ended; this only releases its resources
	}
	return supervisor.Start(supervisor.Process{Role: role, Run: run, Namespaces: allNamespaces, Caps: initCapabilities(), Dies: true})
}

// Open opens a sandbox.
func (p *Provider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	_, ahead := p.startedInits.Load(spec.Run)
	s, err := p.open(ctx, spec)
	if err != nil && ahead && ctx.Err() == nil { // the process that was started ahead may have ended just now
		s, err = p.open(ctx, spec)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("open sandbox native: %w", err)
	}
	return s, nil
}

func (p *Provider) open(ctx context.Context, spec sandboxes.Spec) (box *sandbox, err error) {
	out, err := p.newPlan(spec)
	if err != nil {
		return nil, err
	}
	who, err := identify(out)
	if err != nil {
		return nil, err
	}
	out.Assume = who.root
	if err := out.ownTree(who); err != nil {
		return nil, err
	}
	given, err := p.mapOwners(out, who)
	if err != nil {
		return nil, diagnose(err)
	}
	defer closeFiles(given)
	c, err := p.initProcess(out.Run)
	if err != nil {
		return nil, diagnose(err)
	}
	var g *cgroup.Group
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Kill(context.WithoutCancel(ctx)), g.Remove(context.WithoutCancel(ctx)))
		}
	}()
	if err := who.mapTo(c.PID()); err != nil {
		return nil, diagnose(err)
	}
	l := spec.Limits.WithDefaults()
	if g, err = p.places().Make(out.Run, cgroup.Limits{Memory: l.Memory, CPUs: l.CPUs, PIDs: l.PIDs}); err != nil {
		return nil, err
	}
	if err := cgroup.Enter(g.Dirs(), c.PID()); err != nil {
		return nil, err
	}
	out.WatchMemory, out.WatchPIDs = !g.Limits("memory"), !g.Limits("pids")
	env := baseEnv(out.path(os.Getenv("PATH")))
	if spec.Egress != "" {
		env = append(env, forward.Env()...)
	}
	env = append(env, "PWD="+out.Workdir)
	err = c.Open(ctx, out, given, supervisor.Commands{
		Dir: out.Workdir, Env: append(env, spec.Env...), Own: who.root, UID: who.hostUID, GID: who.hostGID,
	})
	if err != nil {
		return nil, diagnose(err)
	}
	return &sandbox{client: c, group: g, plan: out}, nil
}

// Reap kills and removes what a crashed ralph has left of a run.
func (p *Provider) Reap(ctx context.Context, run string) error {
	if run == "" {
		return errors.New("reap sandbox native: the run has no id")
	}
	if started, ok := p.startedInits.LoadAndDelete(run); ok { // otherwise a later Open would take a killed process
		_ = started.(*supervisor.Client).Kill(ctx) // killInits below finds it, too
	}
	if err := killInits(ctx, run); err != nil {
		return fmt.Errorf("reap sandbox native: %w", err)
	}
	if err := cgroup.Reap(ctx, run); err != nil {
		return fmt.Errorf("reap sandbox native: %w", err)
	}
	return nil
}
