package config

import (
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

func TestReviewer(t *testing.T) {
	t.Parallel()
	r := Reviewer{Agent: agents.Claude{}, Options: agents.Options{Model: "opus"}}
	if got := r.Settings(); got != (journal.Reviewing{Agent: "claude-code:opus", Rounds: 2}) {
		t.Errorf("%+v", got)
	}
	if r.Rounds = -1; r.Settings().Rounds != 0 || (Reviewer{}).Settings() != (journal.Reviewing{}) {
		t.Error(r.Settings())
	}
	// A key for one service is never sent to the address of another.
	there := gateway.Network{Upstream: "https://gateway.example.com"}
	if r.Check(agents.Codex{}, there) == nil || r.Check(agents.Claude{}, there) != nil || r.Check(agents.Codex{}, gateway.Network{}) != nil {
		t.Error("the address is not kept to its agent")
	}
	if r.Options.Effort = "endless"; r.Check(agents.Claude{}, there) == nil || (Reviewer{}).Check(agents.Codex{}, there) != nil {
		t.Error("options are not checked")
	}
}

// isolated is a sandbox that protects the host.
type isolated struct{ sandboxes.Provider }

func (isolated) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Isolation: sandboxes.VM}
}

// In a sandbox that isolates, every agent acts without asking, unless its own mode says otherwise.
func TestUnasked(t *testing.T) {
	t.Parallel()
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	moded := agents.Link{Options: agents.Options{PermissionMode: "plan"}}
	c := Config{Sandboxes: isolated{none}, Fallback: agents.Chain{{}, moded}, Attempts: agents.Chain{{}}}
	if !c.Sandboxes.Capabilities().Isolated() {
		t.Fatal("the sandbox of this test isolates nothing")
	}
	got := c.WithDefaults()
	if !got.Options.SkipPermissions || !got.Fallback[0].Options.SkipPermissions || got.Fallback[1].Options.SkipPermissions ||
		!got.Attempts[0].Options.SkipPermissions || !got.Review.Options.SkipPermissions || c.Fallback[0].Options.SkipPermissions {
		t.Errorf("%+v", got)
	}
	if c.Sandboxes = none; c.WithDefaults().Options.SkipPermissions {
		t.Error("an agent on the host acts unasked")
	}
}
