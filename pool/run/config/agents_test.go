package config

import (
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
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
	// A key of one service goes to no address of another's.
	there := gateway.Network{Upstream: "https://gateway.example.com"}
	if r.Check(agents.Codex{}, there) == nil || r.Check(agents.Claude{}, there) != nil || r.Check(agents.Codex{}, gateway.Network{}) != nil {
		t.Error("the address is not kept to its agent")
	}
	if r.Options.Effort = "endless"; r.Check(agents.Claude{}, there) == nil || (Reviewer{}).Check(agents.Codex{}, there) != nil {
		t.Error("options are not checked")
	}
}
