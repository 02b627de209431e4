package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/describe"
	"github.com/ralph-pool/ralph/sandboxes/container/label"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// Provider runs sandboxes in containers. It is safe for concurrent use.
type Provider struct {
	engine    Engine
	config    Config
	configErr error // errors of the Config; Check and Open return them

	timeouts timeouts // tests change it

	mu         sync.Mutex
	cachedInfo *describe.Engine // guarded by mu; nil until the engine has answered
	verified   map[string]bool  // guarded by mu; ids of images in which commands can run
}

var (
	_ sandboxes.Provider     = (*Provider)(nil)
	_ sandboxes.Reaper       = (*Provider)(nil)
	_ sandboxes.Sandbox      = (*box)(nil)
	_ sandboxes.Noticer      = (*box)(nil)
	_ sandboxes.HomeKeyer    = (*Provider)(nil)
	_ sandboxes.HomeReporter = (*box)(nil)
)

// timeouts holds time limits: until a quiet command's container is checked, for a call, and for the end of a command.
type timeouts struct{ quiet, call, end time.Duration }

// New returns a provider. Only Check and Open report an invalid Config, so that an unused provider does no harm.
func New(e Engine, c Config) *Provider {
	p := &Provider{engine: e, verified: make(map[string]bool), timeouts: timeouts{quietLimit, engine.CallLimit, engine.EndLimit}}
	p.config, p.configErr = c.withDefaults(p.buildImage())
	return p
}

// Name returns the engine's name.
func (p *Provider) Name() string { return p.engine.Name }

// Capabilities depends on the Config: with Kata, the isolation is that of a virtual machine.
func (p *Provider) Capabilities() sandboxes.Capabilities {
	c := sandboxes.Capabilities{
		Files: sandboxes.Bind, Isolation: sandboxes.Container, Disk: true, Home: true,
		Egress: p.config.Network == "none", Secrets: p.config.Network == "none", Limits: !p.config.Unbounded,
		Weaker: p.config.weakeningSettings(),
	}
	if strings.HasPrefix(p.config.Runtime, "kata") {
		c.Isolation = sandboxes.VM
	}
	return c
}

// Check reports whether the engine answers, can enforce limits, and has the image.
func (p *Provider) Check(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.configErr != nil {
		return fmt.Errorf("configure %s: %w", p.engine.Name, p.configErr)
	}
	in, err := p.engineInfo(ctx)
	if err != nil {
		return err
	}
	if err := p.checkLimits(in); err != nil {
		return err
	}
	_, err = p.image(ctx)
	return err
}

// Open creates a container for the run and returns when commands can run in it.
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
	case p.configErr != nil:
		return nil, p.configErr
	}
	plan, err := p.plan(ctx, spec)
	if err != nil {
		return nil, err
	}
	if spec.Disk != nil {
		return p.openDisk(ctx, plan)
	}
	b, err := p.start(ctx, plan)
	if err == nil || !plan.copiesHome() || ctx.Err() != nil {
		return b, err
	}
	why := err.Error()
	spec.Home = ""
	if plan, err = p.plan(ctx, spec); err != nil {
		return nil, err
	}
	plan.emptyHomeReason = why
	return p.start(ctx, plan)
}

// start creates the container of a plan.
func (p *Provider) start(ctx context.Context, plan *plan) (*box, error) {
	args, err := plan.arguments()
	if err != nil {
		return nil, err
	}
	if err := plan.write(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(plan.state))
	}
	b := plan.box()
	// Do not kill the engine's program during its work: a container could appear after we have searched for it. It takes
	// less than a second.
	if _, err = p.call(context.WithoutCancel(ctx), args...); err == nil {
		if err = b.rename(context.WithoutCancel(ctx), plan.spec.Name); err == nil {
			err = p.verify(ctx, b, plan)
		}
	} else {
		err = p.explainRun(err)
	}
	if err != nil {
		ctx, cancel := cleanUp(ctx)
		defer cancel()
		return nil, errors.Join(err, b.remove(ctx, false))
	}
	return b, nil
}

// Reap removes the containers and files of a run that a crashed ralph left. It needs no image.
func (p *Provider) Reap(ctx context.Context, run string) error {
	if run == "" {
		return errors.New("remove the containers of a run: it has no id")
	}
	if err := p.endContainers(ctx, run, p.end); err != nil {
		return err
	}
	var errs []error
	if !p.config.Keep {
		errs = append(errs, p.RemoveDisk(ctx, run))
	}
	if err := errors.Join(append(errs, p.removeFiles(run))...); err != nil {
		return fmt.Errorf("remove the files of %s: %w", run, err)
	}
	return nil
}

// Abandoned returns the containers of this StateDir, even kept ones, whose ralph process on this host has exited: runs by name.
func (p *Provider) Abandoned(ctx context.Context) (map[string]string, error) {
	names, err := p.call(ctx, "ps", "--all", "--filter", label.OfState(p.config.StateDir), "--format", "{{.Names}}")
	return p.abandoned(ctx, strings.Fields(names), err, "container", "{{json .Config.Labels}}")
}

// abandoned returns, by name, the runs of the listed objects whose creator has ended. err is the error of the listing.
func (p *Provider) abandoned(ctx context.Context, names []string, err error, kind, format string) (map[string]string, error) {
	found := map[string]string{}
	for _, name := range names {
		var text, run string
		var ended bool
		if text, err = p.call(ctx, kind, "inspect", "--format", format, name); isRetryable(err) {
			run, ended, err = label.Abandoned(text) // no text: it is gone meanwhile
		}
		if err != nil {
			break
		}
		if ended {
			found[name] = run
		}
	}
	if err != nil {
		return nil, fmt.Errorf("look for %ss that nothing uses: %w", kind, err)
	}
	return found, nil
}

// Discard ends and removes a container, even a kept one. Its disk stays.
func (p *Provider) Discard(ctx context.Context, name string) error {
	_, err := p.call(ctx, append(p.engine.dialect().remove, name)...)
	return err
}

// removeFiles removes the state folders of the run's containers.
func (p *Provider) removeFiles(run string) error {
	entries, err := os.ReadDir(p.config.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), containerName(run, "")) {
			errs = append(errs, os.RemoveAll(filepath.Join(p.config.StateDir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// endContainers calls end for each of the run's containers.
func (p *Provider) endContainers(ctx context.Context, run string, end func(ctx context.Context, name string) error) error {
	out, err := p.call(ctx, "ps", "--all", "--filter", label.OfRun(run), "--format", "{{.Names}}")
	if err != nil {
		return fmt.Errorf("look for the containers of %s: %w", run, err)
	}
	var errs []error
	for name := range strings.FieldsSeq(out) {
		errs = append(errs, end(ctx, name))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end the containers of %s: %w", run, err)
	}
	return nil
}
