package run

import (
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/redact"
)

// The agent's credentials are redacted.
func TestCredentialsAreRedacted(t *testing.T) {
	t.Parallel()
	s := redact.New()
	x := &execution{task: &Task{}, r: &Runner{}, c: &Config{
		Agent: agents.Claude{}, Secrets: s, Network: gateway.Network{User: agents.User{Env: []string{"ANTHROPIC_API_KEY=the-key-of-the-user"}}},
	}}
	x.addSecrets(t.Context())
	if !s.In("the-key-of-the-user") {
		t.Error("the agent's own key is not redacted")
	}
}
