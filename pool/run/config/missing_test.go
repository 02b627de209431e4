package config_test

import (
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// Everything that asks an agent for its name comes after this check.
func TestMissing(t *testing.T) {
	t.Parallel()
	c := config.Config{Repo: &worktree.Repo{}, Store: &journaltest.Memory{}, Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}), Agent: agents.Command{}}
	if err := c.Missing(); err == nil || err.Error() != "required and not set: Repo" { // the repository was not opened
		t.Fatal(err)
	}
	c.Fallback, c.Attempts, c.Store = agents.Chain{{Agent: agents.Codex{}}, {}}, agents.Chain{{}}, nil
	if err := c.Missing(); err == nil || err.Error() != "required and not set: Repo, Store, Fallback[1].Agent, Attempts[0].Agent" {
		t.Error(err)
	}
}
