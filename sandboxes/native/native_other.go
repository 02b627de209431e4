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

// New returns the provider, which cannot be used on this system.
func New(Config) *Provider { return &Provider{} }

// Capabilities returns those on a system where the provider works.
func (*Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Bind, Isolation: sandboxes.Namespaces}
}

// Check returns the reason why the provider cannot be used.
func (*Provider) Check(context.Context) error {
	return fmt.Errorf("sandbox native needs Linux, this is %s: choose docker, podman or sbx", runtime.GOOS)
}

// Open returns the error of Check.
func (p *Provider) Open(ctx context.Context, _ sandboxes.Spec) (sandboxes.Sandbox, error) {
	return nil, p.Check(ctx)
}

// Reap does nothing: no sandbox can have been opened here.
func (*Provider) Reap(context.Context, string) error { return nil }

// Layers returns the error of Check.
func (p *Provider) Layers(ctx context.Context, _ string) error { return p.Check(ctx) }
