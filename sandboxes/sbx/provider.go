package sbx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// Provider opens microVMs. It is safe for concurrent use.
type Provider struct {
	config    Config
	env       []string // environment of sbx
	configErr error    // errors of the Config; Check and Open return them
}

var (
	_ sandboxes.Provider        = (*Provider)(nil)
	_ sandboxes.Reaper          = (*Provider)(nil)
	_ sandboxes.Sandbox         = (*box)(nil)
	_ sandboxes.Noticer         = (*box)(nil)
	_ sandboxes.RefusalReporter = (*box)(nil)
)

// New returns a provider. Only Check and Open report an invalid Config, so that an unused provider does no harm.
func New(c Config) *Provider {
	p := &Provider{}
	p.config, p.configErr = c.withDefaults()
	p.env = slices.DeleteFunc(slices.Clone(p.config.HostEnv), func(e string) bool { return !isEngineVariable(e) })
	return p
}

// createLimit is the time limit of a create, which may pull the image.
const createLimit = 10 * time.Minute

func (p *Provider) program() engine.Program {
	return engine.Program{
		Name: "sbx", Command: p.config.Command, Env: p.env,
		Missing: "install Docker Sandboxes and run sbx login (ralph's use of it is tested against a stand-in only)",
	}
}

// call runs sbx and returns its output.
func (p *Provider) call(ctx context.Context, args ...string) (string, error) {
	return p.program().Call(ctx, args...)
}

// Name returns "sbx".
func (*Provider) Name() string { return "sbx" }

// Capabilities reports no limits, because root inside may start any number of processes.
func (*Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{
		Files: sandboxes.Bind, Isolation: sandboxes.VM, OwnEgress: true, Secrets: true,
		Weaker: strings.Join([]string{
			"commands can become root inside, and root's processes are not limited",
			"root inside can replace the worktree's .git file until the sandbox is closed",
			"processes that others start for a command, such as containers, live until the sandbox is closed",
			"scratch space is not limited",
			"hosts that sbx's own policy allows can be reached, too",
		}, "; "),
	}
}

// Open creates a microVM for the run, after removing one that a crashed ralph left. It returns when commands can run.
func (p *Provider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	b, err := p.open(ctx, spec)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("open sandbox sbx: %w", err)
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
	pl, err := p.plan(spec)
	if err != nil {
		return nil, err
	}
	if err := p.Reap(ctx, spec.Run); err != nil {
		return nil, err
	}
	if err := spec.Check(); err != nil { // Reap has restored the .git file
		return nil, err
	}
	if spec.Name != "" { // with a second microVM of that name, the owner would be unclear
		if taken, err := p.boxExists(ctx, spec.Name); err != nil {
			return nil, err
		} else if taken {
			return nil, fmt.Errorf("there is a microVM named %s; choose another name, or end it with: sbx rm --force %s",
				spec.Name, spec.Name)
		}
	}
	b, err := pl.box()
	if err != nil {
		return nil, err
	}
	// Do not kill sbx during its work: a microVM could appear after we have searched for it.
	_, err = p.program().Limit(createLimit).Call(context.WithoutCancel(ctx), pl.create()...)
	if err != nil && spec.Name != "" { // it may belong to another program that created it at the same time
		return nil, errors.Join(err, os.RemoveAll(pl.state))
	}
	if err == nil {
		err = pl.configure(ctx, b)
	}
	if err != nil {
		return nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// Reap removes the microVM and state folder of a run that a crashed ralph left, and restores the worktree's .git file.
func (p *Provider) Reap(ctx context.Context, run string) error {
	if run == "" {
		return errors.New("remove the microVM of a run: it has no id")
	}
	if p.configErr != nil {
		return p.configErr
	}
	name := boxName(run)
	if text, err := os.ReadFile(filepath.Join(p.stateOf(run), nameFile)); err == nil {
		name = string(text)
	}
	there, err := p.boxExists(ctx, name)
	if err == nil && there {
		err = p.end(ctx, name, false)
	}
	if err != nil {
		return fmt.Errorf("end the microVM of %s: %w", run, err)
	}
	if _, err := sandboxes.RestoreGitFile(p.stateOf(run)); err != nil {
		return err
	}
	return os.RemoveAll(p.stateOf(run))
}

// stateOf returns the state folder of a run's microVM.
func (p *Provider) stateOf(run string) string { return filepath.Join(p.config.StateDir, boxName(run)) }

// end removes a microVM with everything in it, or with keep only stops it. A missing microVM is no error.
func (p *Provider) end(ctx context.Context, name string, keep bool) error {
	args := []string{"rm", "--force", name}
	if keep {
		args = []string{"stop", name}
	}
	_, err := p.call(ctx, args...)
	if err == nil {
		return nil
	}
	if there, listErr := p.boxExists(ctx, name); listErr == nil && !there {
		return nil
	}
	return fmt.Errorf("%w; end it with: sbx rm --force %s", err, name)
}

func (p *Provider) boxExists(ctx context.Context, name string) (bool, error) {
	text, err := p.call(ctx, "ls", "--json")
	if err != nil {
		return false, err
	}
	names, err := readNames(text)
	if err != nil {
		return false, fmt.Errorf("read sbx ls: %w", err)
	}
	return slices.Contains(names, name), nil
}

// boxName returns the default name of a run's microVM.
func boxName(run string) string {
	sum := sha256.Sum256([]byte(run))
	return "ralph-" + hex.EncodeToString(sum[:8])
}
