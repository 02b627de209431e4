package landlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// Provider is the provider "landlock".
type Provider struct {
	show    []string
	scratch string
	places  func() cgroup.Places // found at the first use
}

// New returns the provider. It does nothing on the host before it is used.
func New(c Config) *Provider {
	return &Provider{show: slices.Clone(c.Show), scratch: cmp.Or(c.Scratch, os.TempDir()), places: sync.OnceValue(cgroup.Find)}
}

// Check runs a command in a sandbox. The error is one line that names what is missing and the fix.
func (p *Provider) Check(ctx context.Context) error { return supervisor.Try(ctx, p) }

// Open opens a sandbox.
func (p *Provider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s, err := p.open(ctx, spec)
	if ctx.Err() != nil && err != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open sandbox landlock: %w", err)
	}
	return s, nil
}

func (p *Provider) open(ctx context.Context, spec sandboxes.Spec) (box *sandbox, err error) {
	if err := checkSupport(); err != nil {
		return nil, err
	}
	out, err := p.newPlan(spec)
	if err != nil {
		return nil, err
	}
	dirs, err := makeScratch(p.scratch, out)
	if err != nil {
		return nil, err
	}
	box = &sandbox{plan: out, scratch: dirs}
	defer func() {
		if err != nil {
			err = errors.Join(err, box.abandon(context.WithoutCancel(ctx)))
		}
	}()
	out.Write = append(out.Write, dirs.home(), dirs.temp())
	limits := cgroup.Limits{Memory: out.Memory, CPUs: spec.Limits.WithDefaults().CPUs, PIDs: out.PIDs}
	if box.group, err = p.places().Make(out.Run, limits); err != nil {
		return nil, err
	}
	out.Groups, out.WatchMemory, out.WatchPIDs = box.group.Dirs(), !box.group.Limits("memory"), !box.group.Limits("pids")
	if spec.GitDir != "" {
		if err := dirs.redirectGitFile(out.Worktree, spec.GitDir); err != nil {
			return nil, err
		}
	}
	env := baseEnv(out.path(os.Getenv("PATH")), dirs)
	if spec.Egress != "" {
		if box.relay, err = openRelay(spec.Egress, out.UID); err != nil {
			return nil, fmt.Errorf("forward to the egress socket: %w", err)
		}
		out.Ports = box.relay.ports
		env = append(env, forward.Env()...)
	}
	env = box.relay.replace(slices.Concat(env, []string{"PWD=" + out.Worktree}, spec.Env))
	if box.client, err = supervisor.Start(supervisor.Process{Role: role, Run: out.Run}); err != nil {
		return nil, err
	}
	return box, box.client.Open(ctx, out, nil, supervisor.Commands{
		Dir: out.Worktree,
		Env: env,
		Own: out.Assume,
		UID: out.UID,
		GID: out.GID,
	})
}

// abandon removes what a failed open has created.
func (s *sandbox) abandon(ctx context.Context) (err error) {
	if s.client != nil {
		err = s.client.Kill(ctx)
	}
	s.relay.close()
	return errors.Join(err, s.group.Remove(ctx), s.scratch.remove())
}

// Reap kills and removes what a crashed ralph has left of a run, and restores what the sandbox changed on the host.
func (p *Provider) Reap(ctx context.Context, run string) error {
	if run == "" {
		return errors.New("reap sandbox landlock: the run has no id")
	}
	if err := proc.KillMarked(ctx, run); err != nil {
		return fmt.Errorf("reap sandbox landlock: %w", err)
	}
	found, err := findScratch(p.scratch, run)
	for _, dirs := range found {
		err = errors.Join(err, dirs.remove())
	}
	if err = errors.Join(err, cgroup.Reap(ctx, run)); err != nil {
		return fmt.Errorf("reap sandbox landlock: %w", err)
	}
	return nil
}
