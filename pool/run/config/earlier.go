package config

import (
	"context"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Had is the provider that a run had, if it is not the one that runs have now; nil: it is, or it is not known. It is for other
// packages of this module.
func (c *Config) Had(ctx context.Context, run string) (sandboxes.Provider, error) {
	rec, err := journal.Lookup(ctx, c.Store, c.Name, run)
	if err != nil || rec == nil || rec.Sandbox == c.Sandboxes.Name() {
		return nil, err
	}
	other, _ := c.Earlier.Lookup(rec.Sandbox) // not there: nil
	return other, nil
}
