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

// Capabilities says what the provider does where it works.
func (*Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Bind, Isolation: sandboxes.Namespaces}
}

// Check says why the provider cannot be used.
func (*Provider) Check(context.Context) error {
	return fmt.Errorf("sandbox native needs Linux, this is %s: choose docker, podman or sbx", runtime.GOOS)
}

// Open fails as Check does.
func (p *Provider) Open(ctx context.Context, _ sandboxes.Spec) (sandboxes.Sandbox, error) {
	return nil, p.Check(ctx)
}

// Reap finds nothing: no sandbox was ever opened here.
func (*Provider) Reap(context.Context, string) error { return nil }

// Layers fails as Check does.
func (p *Provider) Layers(ctx context.Context, _ string) error { return p.Check(ctx) }
