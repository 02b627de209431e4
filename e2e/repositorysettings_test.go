package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ralph-pool/ralph/e2e/mockmodel"
)

// Settings for claude in a repository can name another model service. The agent still uses ralph's proxy.
func TestRepositoryCannotRedirectClaude(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the native sandbox is Linux's")
	}
	for _, file := range []string{".claude/settings.json", ".claude/settings.local.json"} {
		for name, settings := range map[string]string{
			"base URL": `{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}`,
			"bedrock":  `{"env": {"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_BEDROCK_BASE_URL": "http://127.0.0.1:9", "AWS_REGION": "x"}}`,
		} {
			if !tested(filepath.Base(file) == "settings.json", name == "base URL") {
				continue
			}
			t.Run(fmt.Sprintf("%s by %s", name, filepath.Base(file)), func(t *testing.T) {
				t.Parallel()
				model, url := serveModel(t, mockmodel.Options{Scenario: "write"})
				s, r := newScene(t, doIt), newRepository(t)
				r.write(t, ".ralph/backlog/greet.md", "---\ntitle: Greet\nlabels: [no-human]\n---\nWrite hello.txt.\n")
				r.write(t, file, settings)
				r.commit(t, "a backlog")
				env := []string{
					"PATH=" + filepath.Dir(agentProgram(t, "claude")) + ":" + os.Getenv("PATH"),
					"ANTHROPIC_API_KEY=" + secret, "RALPH_AGENT=claude-code", "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=native",
				}
				p := s.start(t, r, env, "work", "--model", "sonnet", "--agent-upstream", url, "--max-iterations", "1", "--gate", "test -f hello.txt")
				if got := p.end(t); got != 0 {
					t.Errorf("status %d", got)
				}
				if len(model.Requests()) == 0 {
					t.Error("ralph's service was not asked")
				}
				s.clean(t, r)
			})
		}
	}
}
