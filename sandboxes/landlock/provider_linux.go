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
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// Provider is the provider "landlock".
type Provider struct {
	show    []string
	path    string
	scratch string
	places  func() cgroup.Places // tried out once
}

// New returns the provider. Nothing is looked at or made before it is used.
func New(c Config) *Provider {
	p := &Provider{show: slices.Clone(c.Show), path: c.Path, scratch: c.Scratch, places: sync.OnceValue(cgroup.Find)}
	if p.path == "" {
		p.path = os.Getenv("PATH")
	}
	if p.scratch == "" {
		p.scratch = os.TempDir()
	}
	return p
}

// Check runs a command in a sandbox. The error is one line that says what is missing and what mends it.
func (p *Provider) Check(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	dir, err := os.MkdirTemp("", "ralph-check-")
	if err != nil {
		return fmt.Errorf("check sandbox landlock: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	box, err := p.Open(ctx, sandboxes.Spec{Run: "check-" + dir, Worktree: dir})
	if err != nil {
		return err
	}
	exit, err := box.Exec(ctx, sandboxes.Command{Argv: []string{"true"}})
	if err == nil && !exit.OK() {
		err = fmt.Errorf("check sandbox landlock: true ended with %+v", exit)
	}
	return errors.Join(err, box.Close(context.WithoutCancel(ctx)))
}

// Open makes a sandbox.
func (p *Provider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s, err := p.open(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("open sandbox landlock: %w", err)
	}
	return s, nil
}

func (p *Provider) open(ctx context.Context, spec sandboxes.Spec) (box *sandbox, err error) {
	if err := usable(); err != nil {
		return nil, err
	}
	out, err := p.newPlan(spec)
	if err != nil {
		return nil, err
	}
	room, err := makeScratch(p.scratch, out)
	if err != nil {
		return nil, err
	}
	var g *cgroup.Group
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Remove(context.WithoutCancel(ctx)), room.remove())
		}
	}()
	out.Write = append(out.Write, room.home(), room.temp())
	if g, err = p.places().Make(out.Run, cgroup.Limits{Memory: out.Memory, CPUs: cmp.Or(spec.Limits.CPUs, 2), PIDs: out.PIDs}); err != nil {
		return nil, err
	}
	out.Groups, out.WatchMemory, out.WatchPIDs = g.Dirs(), !g.Holds("memory"), !g.Holds("pids")
	if spec.GitDir != "" {
		if err := room.point(out.Worktree, spec.GitDir); err != nil {
			return nil, err
		}
	}
	env := baseEnv(out.path(p.path), room)
	if spec.Egress != "" {
		env = append(env, egress.Env()...)
	}
	env = append(env, "PWD="+out.Worktree)
	return newSandbox(out, room, g, append(env, spec.Env...)), nil
}

// Reap ends what a crashed ralph has left of a run, and puts back what the sandbox had changed on the host.
func (p *Provider) Reap(ctx context.Context, run string) error {
	if run == "" {
		return errors.New("reap sandbox landlock: the run has no id")
	}
	if err := proc.KillMarked(ctx, run); err != nil {
		return fmt.Errorf("reap sandbox landlock: %w", err)
	}
	rooms, err := findScratch(p.scratch, run)
	for _, room := range rooms {
		err = errors.Join(err, room.remove())
	}
	if err = errors.Join(err, cgroup.Reap(ctx, run)); err != nil {
		return fmt.Errorf("reap sandbox landlock: %w", err)
	}
	return nil
}
