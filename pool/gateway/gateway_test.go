package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// A credential is redacted as soon as it is obtained, also if it was renewed meanwhile.
func TestRenewedCredentials(t *testing.T) {
	t.Parallel()
	s := redact.New()
	secret := secretSource(agents.Service{Secret: func(context.Context) (string, error) { return "renewed-credential", nil }}, s)
	if got, err := secret(t.Context()); got != "renewed-credential" || err != nil || !s.In("a renewed-credential") {
		t.Errorf("%q, %v", got, err)
	}
}

// A sandbox that does not use ralph's proxy gets none. A closed or nil gateway can be used and closed.
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

// The most frequent refusals are listed, and the others are counted. Each has its subject as data.
func TestRefusals(t *testing.T) {
	t.Parallel()
	var list []sandboxes.Refusal
	for range maxRefusals + 2 {
		list = append(list, sandboxes.Refusal{Host: "host", Port: 443, Reason: "not allowed", Count: 2})
	}
	list[1].Reason = string(egress.NotConnected)
	list[2] = sandboxes.Refusal{Host: "2001:db8::1", Port: 22, Reason: string(egress.NotAllowed), Count: 1}
	list[3] = sandboxes.Refusal{Host: "service", Reason: string(egress.AddressRefused), Count: 1}
	got := Refusals(list, 3)
	want := []sandboxes.Notice{
		{Text: "network: host:443 was refused (not allowed), 2 times", Subject: sandboxes.Subject{Host: "host", Port: 443}},
		{Text: "network: host:443 was not reached (not-connected), 2 times", Subject: sandboxes.Subject{Host: "host", Port: 443}},
		{Text: "network: [2001:db8::1]:22 was refused (not-allowed), 1 time", Subject: sandboxes.Subject{Cause: sandboxes.NotAllowed, Host: "2001:db8::1", Port: 22}},
		{Text: "network: service was refused (address-refused), 1 time", Subject: sandboxes.Subject{Cause: sandboxes.AddressRefused, Host: "service"}},
	}
	if len(got) != maxRefusals+1 || !slices.Equal(got[:len(want)], want) || got[maxRefusals] != (sandboxes.Notice{Text: "network: 5 more refusals"}) {
		t.Errorf("%+v", got)
	}
}

// Agents of a chain without a login are left out; without any agent left, that is an error. Refusals of a service name the
// agent.
func TestChain(t *testing.T) {
	t.Parallel()
	chain := agents.Chain{{Agent: agents.Claude{}}, {Agent: agents.Codex{}}, {Agent: agents.Codex{}, Options: agents.Options{Model: "m", Env: []string{"OPENAI_API_KEY=inside"}}}}
	var refused []string
	c := Config{
		Run: "chain-test", Provider: proxied{sandboxes.NewNone(sandboxes.NoneConfig{})}, Agents: chain, Secrets: redact.New(),
		Network: Network{User: agents.User{Env: []string{"OPENAI_API_KEY=key"}, Home: t.TempDir()}},
		Limited: func(agent string) { refused = append(refused, agent) },
	}
	g, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	if len(g.Agents) != 2 || len(g.Missing) != 1 || c.Check() != nil {
		t.Errorf("%d agents, missing %q, check: %v", len(g.Agents), g.Missing, c.Check())
	}
	for _, l := range g.Agents {
		if env := strings.Join(l.Options.Env, " "); strings.Contains(env, "=key") || strings.Contains(env, "=inside") || !strings.Contains(env, "ralph-placeholder-") {
			t.Errorf("%s has %s", l.Choice(), env)
		}
	}
	failure := &agents.Failure{Message: "502 Bad Gateway, url: " + g.proxy.URL("openai") + "/responses"}
	if g.RestoreAddresses(nil, failure); failure.Message != "502 Bad Gateway, url: https://api.openai.com/v1/responses" {
		t.Errorf("the service is named as %q", failure.Message)
	}
	bare := &agents.Failure{Message: "check " + strings.TrimPrefix(g.proxy.URL("openai"), "http://")}
	if g.RestoreAddresses(bare); bare.Message != "check api.openai.com" {
		t.Errorf("the service is named as %q", bare.Message)
	}
	c.Meter = NewMeter(c.Network, "r")
	e := c.endpoint(agents.Codex{}, agents.Service{Name: "openai"})
	for _, status := range []int{200, 429, 500, 529} {
		x, err := e.Admit(t.Context(), "POST", "/responses", nil)
		if err != nil {
			t.Fatal(err)
		}
		answered(x, status, "")
	}
	if x, err := e.Admit(t.Context(), "GET", "/models", nil); x != nil || err != nil {
		t.Errorf("a request that uses nothing is followed: %v, %v", x, err)
	}
	if strings.Join(refused, " ") != "codex codex" {
		t.Errorf("told of refusals by %q", refused)
	}
	c.Network.User.Env = nil
	if _, err := c.Open(); err == nil || c.Check() == nil {
		t.Errorf("no login is enough: %v, %v", err, c.Check())
	}
}

// proxied is a sandbox that needs ralph's proxy.
type proxied struct{ sandboxes.Provider }

func (p proxied) Capabilities() sandboxes.Capabilities {
	c := p.Provider.Capabilities()
	c.Egress = true
	return c
}
