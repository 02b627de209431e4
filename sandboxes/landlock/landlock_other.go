//go:build !linux

package landlock

import (
	"context"
	"fmt"
	"runtime"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Provider is the provider "landlock".
type Provider struct{}

// New returns the provider, which cannot be used here.
func New(Config) *Provider { return &Provider{} }

// Check returns the reason why the provider cannot be used.
func (*Provider) Check(context.Context) error {
	return fmt.Errorf("sandbox landlock needs Linux 6.12, this is %s: choose docker or podman", runtime.GOOS)
}

// Open returns the error of Check.
func (p *Provider) Open(ctx context.Context, _ sandboxes.Spec) (sandboxes.Sandbox, error) {
	return nil, p.Check(ctx)
}

// Reap does nothing: no sandbox can have been opened here.
func (*Provider) Reap(context.Context, string) error { return nil }
