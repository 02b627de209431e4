package container_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/escapetest"
)

// What of the attacks an engine's wall has to hold against as it comes. The others ask for a seccomp filter and a first
// process of ralph's own, or for files that are mounted.
func TestNothingEscapes(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		c := r.config(t)
		c.User = "1000:1000"
		program := filepath.Join(scratch, "attacker-"+name)
		copyProgram(t, program)
		escapetest.Run(t, func(*testing.T) sandboxes.Provider { return container.New(r.engine, c) }, escapetest.Options{
			Program: program, Only: []string{
				"network/there is none", "secrets/files of the host", "exhaust/memory",
				"files/links, pipes and devices in the worktree",
			},
		})
	})
}

// attack makes this program the attacker when it was started to be one.
func attack() (status int, inside bool) { return escapetest.Attack(os.Args, os.Stdout) }
