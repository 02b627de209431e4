package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/e2e/mockmodel"
)

// secret is the credential that must never reach a sandbox.
const secret = "sk-ant-" + "the-real-secret-0123456789abcdef"

// The real agents work a backlog in the sandboxes that need no image: with a placeholder instead of a key, no network except
// ralph's proxy, and a private repository. The gate searches every file and process that it can see for the key.
func TestRealAgentsIsolated(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("these sandboxes are Linux's")
	}
	model := startModel(t)
	for agent, tt := range map[string]struct{ upstream, key, program, model string }{
		"claude-code": {model, "ANTHROPIC_API_KEY", "claude", "sonnet"},
		"codex":       {model + "/v1", "OPENAI_API_KEY", "codex", "gpt-5.5"},
	} {
		for _, sandbox := range isolating() {
			t.Run(agent+" in "+sandbox, func(t *testing.T) {
				t.Parallel()
				s, r := newScene(t, doIt), newRepository(t)
				r.write(t, ".ralph/backlog/greet.md", "---\ntitle: Greet\nlabels: [no-human]\n---\nWrite hello.txt.\n")
				r.write(t, "look.sh", lookForSecrets)
				r.write(t, "control.sh", findAPlanted)
				r.commit(t, "a backlog")
				env := []string{
					"PATH=" + filepath.Dir(agentProgram(t, tt.program)) + ":" + os.Getenv("PATH"),
					tt.key + "=" + secret, "RALPH_AGENT=" + agent, "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=" + sandbox,
				}
				p := s.start(t, r, env, "work", "--model", tt.model, "--agent-upstream", tt.upstream, "--max-iterations", "2",
					"--gate", "test -f hello.txt", "--gate", "sh control.sh", "--gate", "sh look.sh")
				if got := p.end(t); got != 0 {
					t.Fatalf("status %d", got)
				}
				if n := r.commits(t, "ralph/greet"); n != 1 {
					t.Errorf("%d commits", n)
				}
				report, err := os.ReadFile(filepath.Join(string(r), ".ralph/backlog/greet.md"))
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(report), secret) || !strings.Contains(string(report), "sandbox: "+sandbox) {
					t.Errorf("report:\n%s", report)
				}
				s.clean(t, r)
			})
		}
	}
}

// isolating returns the sandboxes that need no image. Landlock does not work for root; see TestRealAgentsInLandlock.
func isolating() []string {
	if os.Getuid() == 0 || !hasLandlock() {
		return []string{"native"}
	}
	return []string{"native", "landlock"}
}

// startModel starts a model that writes and commits a file.
func startModel(t *testing.T) string {
	t.Helper()
	_, url := serveModel(t, mockmodel.Options{Scenario: "write"})
	return url
}

// serveModel starts a scripted model.
func serveModel(t *testing.T, o mockmodel.Options) (model *mockmodel.Server, url string) {
	t.Helper()
	model = mockmodel.New(o)
	url, err := model.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	return model, url
}

// agentProgram returns the path of a real agent.
func agentProgram(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv("RALPH_E2E_AGENTS") == "off" {
		t.Skip("RALPH_E2E_AGENTS=off")
	}
	path, err := filepath.Abs("../.tools/npm/node_modules/.bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the real %s is not there (%v); run e2e/agents/install.sh, or set RALPH_E2E_AGENTS=off to do without", name, err)
	}
	return path
}

// lookForSecrets fails if a process or file contains the key. It assembles the key only here.
const lookForSecrets = `key=sk-ant
key=${key}-the-real-secret-0123456789abcdef
for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do
  if tr '\0' '\n' < "$f" 2>/dev/null | grep -qF "$key"; then echo "the key is in $f"; exit 1; fi
done
if grep -rIlF "$key" "$HOME" "${TMPDIR:-/tmp}" /tmp /etc . "$(cut -d' ' -f2 .git)" 2>/dev/null; then exit 1; fi
if env | grep -qF "$key"; then echo "the key is in the environment"; exit 1; fi
`
