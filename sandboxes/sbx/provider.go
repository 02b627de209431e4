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

	"github.com/ralph-pool/ralph/sandboxes"
)

// Provider makes microVMs.
type Provider struct {
	config  Config
	env     []string // of sbx
	invalid error    // what is wrong with the Config; told by Check and Open
}

var (
	_ sandboxes.Provider = (*Provider)(nil)
	_ sandboxes.Reaper   = (*Provider)(nil)
	_ sandboxes.Sandbox  = (*box)(nil)
	_ sandboxes.Noticer  = (*box)(nil)
	_ sandboxes.Refuser  = (*box)(nil)
)

// New returns a provider. A mistake in the Config is told by Check and Open, so that a provider that nobody uses stops
// nothing.
func New(c Config) *Provider {
	p := &Provider{}
	p.config, p.invalid = c.withDefaults()
	p.env = slices.DeleteFunc(slices.Clone(p.config.HostEnv), func(e string) bool { return !needed(e) })
	return p
}

// Name is "sbx".
func (*Provider) Name() string { return "sbx" }

// Capabilities says: the worktree is passed through to a virtual machine, and sbx keeps secrets outside and the network
// to its own policy. Root inside may start any number of processes, so that limits are
// not promised.
func (*Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Bind, Isolation: sandboxes.VM, OwnEgress: true, Secrets: true}
}

// Open makes a microVM for the run, in place of one that a crashed ralph left, and returns when commands can run in it.
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
	case p.invalid != nil:
		return nil, p.invalid
	}
	pl, err := p.plan(spec)
	if err != nil {
		return nil, err
	}
	if err := p.Reap(ctx, spec.Run); err != nil {
		return nil, err
	}
	b, err := pl.box()
	if err != nil {
		return nil, err
	}
	// What is under way is not cut off in the middle: a microVM might appear after we have looked for it.
	if _, err = p.call(context.WithoutCancel(ctx), "", pl.create()...); err == nil {
		err = pl.furnish(ctx, b)
	}
	if err != nil {
		return nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// Reap removes the microVM of a run that a crashed ralph left, and its files.
func (p *Provider) Reap(ctx context.Context, run string) error {
	if run == "" {
		return errors.New("remove the microVM of a run: it has no id")
	}
	if p.invalid != nil {
		return p.invalid
	}
	name := boxName(run)
	there, err := p.listed(ctx, name)
	if err == nil && there {
		err = p.end(ctx, name, false)
	}
	if err != nil {
		return fmt.Errorf("end what is left of %s: %w", run, err)
	}
	return os.RemoveAll(filepath.Join(p.config.StateDir, name))
}

// end removes a microVM with everything in it, or only stops it. It is not an error if it is gone.
func (p *Provider) end(ctx context.Context, name string, keep bool) error {
	args := []string{"rm", "--force", name}
	if keep {
		args = []string{"stop", name}
	}
	_, err := p.call(ctx, "", args...)
	if err == nil {
		return nil
	}
	if there, listErr := p.listed(ctx, name); listErr == nil && !there {
		return nil
	}
	return fmt.Errorf("%w; end it with: sbx rm --force %s", err, name)
}

func (p *Provider) listed(ctx context.Context, name string) (bool, error) {
	text, err := p.call(ctx, "", "ls", "--json")
	if err != nil {
		return false, err
	}
	names, err := readNames(text)
	if err != nil {
		return false, fmt.Errorf("read sbx ls: %w", err)
	}
	return slices.Contains(names, name), nil
}

// boxName is the name of a run's microVM: whoever knows the run finds it without any record.
func boxName(run string) string {
	sum := sha256.Sum256([]byte(run))
	return "ralph-" + hex.EncodeToString(sum[:8])
}
