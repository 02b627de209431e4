package gateway

import (
	"context"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes"
)

// A credential is redacted from the moment it is obtained, also when its owner has renewed it meanwhile.
func TestRenewedCredentials(t *testing.T) {
	t.Parallel()
	s := redact.New()
	secret := learning(agents.Service{Secret: func(context.Context) (string, error) { return "renewed-credential", nil }}, s)
	if got, err := secret(t.Context()); got != "renewed-credential" || err != nil || !s.In("a renewed-credential") {
		t.Errorf("%q, %v", got, err)
	}
}

// A sandbox without egress of ralph's gets no proxy, and a closed or missing gateway can be asked and closed.
func TestNoEgress(t *testing.T) {
	t.Parallel()
	g, err := Config{Run: "run", Provider: sandboxes.NewNone(sandboxes.NoneConfig{}), Agents: agents.Chain{{Agent: agents.Codex{}, Options: agents.Options{Model: "m"}}}}.Open()
	if err != nil || g.Socket != "" || g.Agents[0].Options.Model != "m" {
		t.Fatalf("%+v, %v", g, err)
	}
	for _, g := range []*Gateway{g, nil} {
		if len(g.Refused()) != 0 || g.Close() != nil {
			t.Error("there is nothing to refuse or to close")
		}
	}
}

// Refusals name the most frequent, and count the rest.
func TestRefusals(t *testing.T) {
	t.Parallel()
	var list []sandboxes.Refusal
	for range maxRefusals + 2 {
		list = append(list, sandboxes.Refusal{Where: "host:443", Reason: "not allowed", Count: 2})
	}
	lines := Refusals(list, 3)
	if len(lines) != maxRefusals+1 || lines[0] != "network: host:443 was refused (not allowed), 2 times" || lines[maxRefusals] != "network: 5 more refusals" {
		t.Errorf("%q", lines)
	}
}
