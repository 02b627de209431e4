package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
)

func TestSbxConfig(t *testing.T) {
	t.Parallel()
	got := sbxConfig(config.Config{
		Agent: "claude-code", Image: "example/app:1", Allow: []string{"goproxy.example.com", "*.example.com:8443,443", "[2001:db8::1]:22", "not a rule:x"},
	}, agents.Claude{}.Describe(), nil)
	want := []string{
		"api.anthropic.com:443", "goproxy.example.com:443", "goproxy.example.com:80", "**.example.com:8443", "**.example.com:443", "[2001:db8::1]:22",
	}
	if diff := cmp.Diff(want, got.Allow); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"anthropic": "ANTHROPIC_API_KEY"}, got.SecretEnv); diff != "" {
		t.Error(diff)
	}
	if got.Agent != "claude" || got.Template != "example/app:1" {
		t.Errorf("it is a sandbox of %q, of %q", got.Agent, got.Template)
	}
	if got := sbxConfig(config.Config{Agent: "command"}, agents.Command{}.Describe(), nil); len(got.Allow) != 0 || len(got.SecretEnv) != 0 || got.Agent != "" {
		t.Errorf("an agent without a service gets %+v", got)
	}
}

// The microVM only gets placeholders, even if agent-env names the key itself.
func TestSbxAgentHoldsPlaceholders(t *testing.T) {
	t.Parallel()
	a := &App{Host: Host{Env: []string{"ANTHROPIC_API_KEY=true-key"}}}
	c := config.Config{Agent: "claude-code", Sandbox: "sbx", AgentEnv: []string{"ANTHROPIC_API_KEY", "A=b"}}
	provider, err := a.SandboxRegistry(&Parts{Config: c}).Lookup("sbx")
	if err != nil {
		t.Fatal(err)
	}
	_, options, _, err := a.Agent(c, provider)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"A=b", "ANTHROPIC_API_KEY=proxy-managed"}, options.Env); diff != "" {
		t.Error(diff)
	}
}
