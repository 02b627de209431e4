package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/sandboxes"
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

// The microVM gets placeholders, even where agent-env names the key itself.
func TestSbxAgentHoldsPlaceholders(t *testing.T) {
	t.Parallel()
	a := &app{host: Host{Env: []string{"ANTHROPIC_API_KEY=true-key"}}}
	c := config.Config{Agent: "claude-code", Sandbox: "sbx", AgentEnv: []string{"ANTHROPIC_API_KEY", "A=b"}}
	provider, err := a.sandboxRegistry(&parts{Config: c}).Lookup("sbx")
	if err != nil {
		t.Fatal(err)
	}
	_, options, _, err := a.agent(c, provider)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"A=b", "ANTHROPIC_API_KEY=proxy-managed"}, options.Env); diff != "" {
		t.Error(diff)
	}
}

func TestNetworkWord(t *testing.T) {
	t.Parallel()
	a := &app{}
	got := map[string]string{}
	registry := a.sandboxRegistry(&parts{})
	for _, name := range registry.Names() {
		p, err := registry.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = networkWord(p.Capabilities())
	}
	if got["sbx"] != "own policy" || got["docker"] != "allow-list" || got["none"] != "open" {
		t.Errorf("got %v", got)
	}
	if w := networkWord(sandboxes.Capabilities{}); w != "open" {
		t.Errorf("what promises nothing is %q", w)
	}
}

func TestInitSbx(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "init", "--agent=codex", "--sandbox=sbx", "--gate=make test")
	if got.status != 0 || got.stderr != "" || strings.Contains(got.stdout, "skip-permissions") {
		t.Errorf("got %+v", got)
	}
	if got := m.run(t, nil, "config", "sandbox"); got.stdout != "sbx\n" {
		t.Errorf("got %+v", got)
	}
}

// Doctor says whether sbx is there, and whether it will have the agent's credential.
func TestDoctorSbx(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/config.yaml", "agent: claude-code\nsandbox: sbx\n")
	bin := filepath.Join(m.root, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	doctor := func(env ...string) string {
		got := m.run(t, func(h *Host) { h.Env = append([]string{"HOME=" + m.home, "PATH=" + bin + ":/usr/bin:/bin"}, env...) }, "doctor")
		return got.stdout
	}
	if got := doctor(); !strings.Contains(got, "sbx is not installed") {
		t.Errorf("without sbx: %s", got)
	}
	const script = `#!/bin/sh
case $1 in
version) echo sbx version: v0.46.0 ;;
diagnose) echo '{"checks":[{"name":"Login","status":"pass"}]}' ;;
secret) echo '{"secrets":[]}' ;;
*) exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "sbx"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	got := doctor()
	if !strings.Contains(got, "sbx: works") || !strings.Contains(got, "sbx holds no secret for anthropic, and ANTHROPIC_API_KEY is not set") ||
		!strings.Contains(got, "ralph sandbox login --oauth anthropic") {
		t.Errorf("without a secret: %s", got)
	}
	if got := doctor("ANTHROPIC_API_KEY=k"); !strings.Contains(got, "sbx: works") || strings.Contains(got, "sbx holds no secret") {
		t.Errorf("with a key: %s", got)
	}
}
