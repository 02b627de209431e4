package config

import (
	"context"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// EarlierProvider returns the sandbox provider of an earlier run if it differs from the present one; nil: it is the same, or
// unknown. Only other packages of this module use it.
func (c *Config) EarlierProvider(ctx context.Context, run string) (sandboxes.Provider, error) {
	rec, err := journal.Lookup(ctx, c.Store, c.Pool, run)
	if err != nil || rec == nil || rec.Sandbox == c.Sandboxes.Name() {
		return nil, err
	}
	other, _ := c.EarlierProviders.Lookup(rec.Sandbox) // nil if it is not registered
	return other, nil
}
