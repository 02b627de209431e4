//go:build !linux

package native

import (
	"context"
	"fmt"
	"runtime"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Provider is the provider "native".
type Provider struct{}

// New returns the provider, which cannot be used here.
func New(Config) *Provider { return &Provider{} }

// Init does nothing on this system: no sandbox ever starts this program.
func Init([]string, func()) (status int, inside bool) { return 0, false }

// Capabilities promises what the provider does where it works.
func (*Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Bind, Isolation: sandboxes.Namespaces}
}

// Enforcement says that nothing is enforced.
func (*Provider) Enforcement() Enforcement { return Enforcement{} }

// Check says why the provider cannot be used.
func (*Provider) Check(context.Context) error {
	return fmt.Errorf("sandbox native needs Linux, this is %s: choose --sandbox docker, podman or sbx", runtime.GOOS)
}

// Open fails as Check does.
func (p *Provider) Open(ctx context.Context, _ sandboxes.Spec) (sandboxes.Sandbox, error) {
	return nil, p.Check(ctx)
}

// Reap finds nothing: no sandbox was ever opened here.
func (*Provider) Reap(context.Context, string) error { return nil }
