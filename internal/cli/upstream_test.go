package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// commit makes the repository's first commit, with all files.
func (m machine) commit(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "--allow-empty", "--message=first"}} {
		git := exec.CommandContext(t.Context(), "git", append([]string{"-C", m.repo, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// program writes a shell script into the machine's folder of programs, and returns that folder.
func (m machine) program(t *testing.T, name, script string) string {
	t.Helper()
	bin := filepath.Join(m.root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// TestUpstreamWithoutASandbox checks that agent-upstream also works without isolation, with the user's own credential.
func TestUpstreamWithoutASandbox(t *testing.T) {
	t.Parallel()
	const upstream = "http://127.0.0.1:9/gateway"
	for name, c := range map[string]struct {
		agent, program string
		env            []string
		want           []string
	}{
		"claude-code": {"claude-code", "claude", []string{"ANTHROPIC_API_KEY=sk-mine"}, []string{"ANTHROPIC_BASE_URL=" + upstream, "ANTHROPIC_API_KEY=sk-mine"}},
		"codex":       {"codex", "codex", []string{"OPENAI_API_KEY=sk-mine"}, []string{`base_url="` + upstream + `"`, "OPENAI_API_KEY=sk-mine"}},
		"agent-env": {
			"claude-code", "claude", []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:1", "RALPH_AGENT_ENV=ANTHROPIC_AUTH_TOKEN=sk-mine"},
			[]string{"ANTHROPIC_BASE_URL=" + upstream, "ANTHROPIC_AUTH_TOKEN=sk-mine"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.commit(t)
			seen := filepath.Join(m.root, "seen")
			bin := m.program(t, c.program, "{ env; printf '%s\\n' \"$@\"; } > "+seen+"\n")
			m.run(t, func(h *compose.Host) {
				h.Env = append([]string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH")}, c.env...)
			}, "run", "--prompt=hi", "--agent", c.agent, "--sandbox=none", "--agent-upstream", upstream)
			text, err := os.ReadFile(seen)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("no %s in\n%s", want, text)
				}
			}
		})
	}
}

// TestUpstreamThatCannotBe checks that an address without effect is refused before anything runs.
func TestUpstreamThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		env  string
		want string
	}{
		"a program":    {[]string{"--agent=command", "--agent-command=true"}, "", "ralph does not know the service of agent command"},
		"sbx":          {[]string{"--agent=codex", "--sandbox=sbx"}, "", "sandbox sbx sends requests through its own proxy"},
		"two services": {[]string{"--agent=codex", "--fallback=claude-code"}, "", "it is the service of agent codex, but fallback names agent claude-code; remove one of the two"},
		"no address":   {[]string{"--agent=codex", "--agent-upstream=gateway"}, "", "not a URL such as https://gateway.example.com"},
		"a cloud":      {[]string{"--agent=claude-code"}, "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_USE_BEDROCK signs requests inside the agent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.commit(t)
			args := append([]string{"run", "--prompt=hi", "--sandbox=none", "--agent-upstream=http://127.0.0.1:9"}, c.args...)
			got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, c.env) }, args...)
			if got.status != exit.Usage || !strings.Contains(got.stderr, "agent-upstream: ") || !strings.Contains(got.stderr, c.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("got %+v", got)
			}
		})
	}
}
