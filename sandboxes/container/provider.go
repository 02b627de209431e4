package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/mirror"
)

// Provider makes containers.
type Provider struct {
	engine  Engine
	config  Config
	invalid error // what is wrong with the Config; told by Check and Open

	// Tests set these.
	copyLimits mirror.Limits // what one folder of a sandbox may give back
	silence    time.Duration // how long a command may say nothing before somebody looks after its container

	mu       sync.Mutex
	known    *info           // guarded by mu; nil until the engine was asked
	verified map[string]bool // guarded by mu; images, by id, in which commands can run
}

var (
	_ sandboxes.Provider = (*Provider)(nil)
	_ sandboxes.Reaper   = (*Provider)(nil)
	_ sandboxes.Sandbox  = (*box)(nil)
	_ sandboxes.Noticer  = (*box)(nil)
	_ sandboxes.Copier   = (*box)(nil)
)

// New returns a provider. A mistake in the Config is told by Check and Open, so that a provider that nobody uses stops
// nothing.
func New(e Engine, c Config) *Provider {
	p := &Provider{engine: e, verified: make(map[string]bool), silence: defaultSilence}
	p.config, p.invalid = c.withDefaults()
	return p
}

// Name is the engine's.
func (p *Provider) Name() string { return p.engine.Name }

// Capabilities says: the worktree is mounted, or copied where that is configured, behind the wall of a container or, with Kata, of a virtual machine.
func (p *Provider) Capabilities() sandboxes.Capabilities {
	c := sandboxes.Capabilities{
		Files: p.config.Files, Isolation: sandboxes.Container,
		Egress: p.config.Network == "none", Secrets: p.config.Network == "none", Limits: !p.config.Unbounded,
	}
	if p.config.Unbounded {
		c.Weaker = "memory, CPU and processes are not limited"
	}
	if strings.HasPrefix(p.config.Runtime, "kata") {
		c.Isolation = sandboxes.VM
	}
	return c
}

// Check reports whether containers can be made: the engine answers, can bound them, and has the image.
func (p *Provider) Check(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.invalid != nil {
		return fmt.Errorf("configure %s: %w", p.engine.Name, p.invalid)
	}
	in, err := p.ask(ctx)
	if err != nil {
		return err
	}
	if err := p.boundable(in); err != nil {
		return err
	}
	_, err = p.image(ctx)
	return err
}

// Open makes a container for the run and returns when commands can run in it.
func (p *Provider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	b, err := p.open(ctx, spec)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("open sandbox %s: %w", p.engine.Name, err)
	}
	return b, nil
}

func (p *Provider) open(ctx context.Context, spec sandboxes.Spec) (*box, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case p.invalid != nil:
		return nil, p.invalid
	}
	plan, err := p.plan(ctx, spec)
	if err != nil {
		return nil, err
	}
	if p.config.Files == sandboxes.Copy {
		return p.openCopy(ctx, plan)
	}
	args, err := plan.arguments()
	if err != nil {
		return nil, err
	}
	if err := plan.write(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(plan.state))
	}
	b := plan.box()
	// The engine's program is not killed in the middle of its work: a container might appear after we have looked for
	// it. It takes less than a second.
	if _, err = p.call(context.WithoutCancel(ctx), args...); err == nil {
		err = p.verify(ctx, b, plan)
	} else if p.elsewhere(err) {
		err = fmt.Errorf("%w; an engine that does not see this host's files needs: --container-files copy", err)
	} else if p.config.Runtime != "" && strings.Contains(err.Error(), p.config.Runtime) {
		err = fmt.Errorf("%w; name a runtime that %s has with --container-runtime, or leave it out", err, p.engine.Name)
	}
	if err != nil {
		return nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// elsewhere reports that the engine may not see this host's files.
func (p *Provider) elsewhere(err error) bool {
	_, local := p.socket()
	return p.engine.Dialect == DialectDocker && !local || strings.Contains(err.Error(), "bind source path does not exist")
}

// Reap removes the containers of a run that a crashed ralph left, and their files. It needs no image. Where files are copied
// it first brings out what the run's commands have left.
func (p *Provider) Reap(ctx context.Context, run string) error {
	if run == "" {
		return errors.New("remove the containers of a run: it has no id")
	}
	out, err := p.call(ctx, "ps", "--all", "--filter", "label="+labelRun+"="+run, "--format", "{{.Names}}")
	if err != nil {
		return fmt.Errorf("look for the containers of %s: %w", run, err)
	}
	var errs []error
	for name := range strings.FieldsSeq(out) {
		err := p.salvage(ctx, name)
		if err == nil {
			err = p.end(ctx, name)
		}
		errs = append(errs, err)
	}
	if !p.config.Keep && errors.Join(errs...) == nil {
		errs = append(errs, p.removeVolumes(ctx, containerName(run, "")))
	}
	files, _ := filepath.Glob(filepath.Join(p.config.StateDir, containerName(run, "*")))
	for _, dir := range files {
		errs = append(errs, os.RemoveAll(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end what is left of %s: %w", run, err)
	}
	return nil
}
