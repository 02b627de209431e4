package sbx_test

import (
	"io"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// CheckAgent and EnsureAgent use the service of the named agent.
func TestAgents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		agent, held   string
		check, ensure string // the error; if Ensure succeeds, the last call and its input
	}{
		"held":      {agent: "codex", held: "openai", ensure: "secret ls --json --service openai"},
		"from host": {agent: "codex", held: "xai", check: "sbx has no secret for openai: give it one with: sbx secret set openai", ensure: "secret set openai <<< the-key"},
		"scoped":    {agent: "claude-code", held: "xai", ensure: "secret set anthropic --oauth"},
		"unknown":   {agent: "other", check: `sbx has no service for the agent "other"`, ensure: `sbx has no service for the agent "other"`},
		"unusable":  {agent: "broken", held: "openai", check: "sbx version: no daemon", ensure: "secret ls --json --service openai"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, shim := withShim(t, func(c *sbx.Config) {
				c.HostEnv = append(c.HostEnv, "KEY=the-key")
				c.SecretEnv = map[string]string{"anthropic": "KEY"}
				c.Agents = map[string]sbx.Need{
					"codex": {Service: "openai", Env: "KEY"}, "claude-code": {Service: "anthropic", OAuth: true}, "broken": {Service: "openai"},
				}
			})
			shim.answer(t, "secret ls", `{"secrets":[{"scope":"global","name":"`+tt.held+`"}]}`, 0)
			if tt.agent == "broken" {
				shim.answer(t, "version", "no daemon\n", 1)
			}
			got := ""
			if err := p.CheckAgent(t.Context(), tt.agent); err != nil {
				got = err.Error()
			}
			if got != tt.check {
				t.Errorf("check says %q, want %q", got, tt.check)
			}
			if err := p.EnsureAgent(t.Context(), tt.agent, io.Discard); err != nil {
				got = err.Error()
			} else {
				calls := shim.calls(t)
				last := calls[len(calls)-1]
				got = strings.Join(last.Args, " ")
				if last.Stdin != "" {
					got += " <<< " + last.Stdin
				}
			}
			if got != tt.ensure {
				t.Errorf("ensure ends with %q, want %q", got, tt.ensure)
			}
		})
	}
}

// A microVM has the requested name. A name that is taken is refused, and its owner is unaffected.
func TestOwnName(t *testing.T) {
	t.Parallel()
	p, shim := withShim(t, nil)
	spec := sandboxes.Spec{Run: "first", Worktree: t.TempDir(), Name: "my-box"}
	if _, err := p.Open(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	second := spec
	second.Run = "second"
	if _, err := p.Open(t.Context(), second); err == nil || !strings.HasPrefix(err.Error(), "open sandbox sbx: there is a microVM named my-box") {
		t.Errorf("a name that is taken: %v", err)
	}
	for _, c := range shim.calls(t) {
		if c.Args[0] == "rm" {
			t.Errorf("called: %q", c.Args)
		}
	}
	if err := p.Reap(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	calls := shim.calls(t)
	if got := strings.Join(calls[len(calls)-1].Args, " "); got != "rm --force my-box" {
		t.Errorf("the last call is %q", got)
	}
	spec.Name = "--force"
	if _, err := p.Open(t.Context(), spec); err == nil || !strings.HasSuffix(err.Error(), `"--force" cannot be the name of a microVM`) {
		t.Errorf("a flag as name: %v", err)
	}
}
