package config

import (
	"fmt"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/toolchain"
	"github.com/ralph-pool/ralph/pool/workspace/homes"
	"github.com/ralph-pool/ralph/sandboxes"
)

// KeptHomes returns the store of what setup makes; nil if nothing is kept or there is no setup. Only other packages of this
// module use it.
func (c *Config) KeptHomes() *homes.Store {
	if c.HomeBytes <= 0 || len(c.Setup) == 0 || !c.Sandboxes.Capabilities().Home {
		return nil
	}
	keyer, _ := sandboxes.As[sandboxes.HomeKeyer](c.Sandboxes)
	h := &homes.Store{
		Dir: filepath.Join(c.Repo.StateDir(), "homes"), MaxBytes: c.HomeBytes, Inputs: c.SetupInputs, Repo: c.Repo, Log: c.Log,
		For: fmt.Sprintf("%s %q %q", c.Sandboxes.Name(), c.Setup, c.Env), Keyer: keyer,
	}
	h.HomeOnly = len(c.Copy)+len(c.Before) > 0
	if len(c.SetupInputs) == 0 && !h.HomeOnly {
		var setup []string
		for _, command := range c.Setup {
			setup = append(setup, command.Line)
		}
		h.Reads, _ = toolchain.ReadsOf(setup)
	}
	return h
}
