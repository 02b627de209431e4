package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// newAgent is an agent that ralph does not know. This is all that is needed to add one.
type newAgent struct{ agents.Command }

func (newAgent) Name() string { return "newcomer" }

func (newAgent) Describe() agents.Description {
	return agents.Description{
		Program: "newcomer-cli", Install: "npm install --global newcomer-cli@1.0.0",
		Login: agents.Login{Keys: []agents.Key{{Env: "NEWCOMER_KEY"}}, Hint: "set NEWCOMER_KEY"},
		Endpoint: &agents.Endpoint{
			Name: "newcomer", Upstream: "https://api.newcomer.example", UpstreamEnv: "NEWCOMER_URL",
			Routes: []agents.Route{{Method: "GET", Path: "/v1/*"}},
			ProxySettings: func(_ agents.Service, url, placeholder string) (env, args []string) {
				return []string{"NEWCOMER_URL=" + url, "NEWCOMER_KEY=" + placeholder}, nil
			},
		},
		Efforts: []string{"lazy", "eager"}, Models: true,
	}
}

func (n newAgent) Invocation(r agents.Request) (agents.Invocation, error) {
	return agents.Invocation{Argv: []string{"newcomer-cli"}, Stdin: r.Prompt, Env: r.Options.Env}, agents.Check(n, r.Options)
}

// withNewAgent adds the agent to ralph if RALPH_TEST_NEW_AGENT is set.
func withNewAgent(h *compose.Host) {
	if os.Getenv("RALPH_TEST_NEW_AGENT") != "" {
		h.Agents = append(agents.Builtin(), newAgent{})
	}
}

// newcomerCLI sends a request to its service, and works.
const newcomerCLI = `#!/bin/sh
if [ "$1" = --version ]; then echo newcomer 1.0; exit; fi
cat > /dev/null
git ls-remote "$NEWCOMER_URL/v1" > /dev/null 2>&1
if [ "$NEWCOMER_KEY" = the-real-newcomer-key ]; then echo the key is inside; exit 1; fi
echo hello > hello.txt && git add hello.txt && git commit -qm 'Add hello'
echo '<promise>COMPLETE</promise>'
`

// An agent that is only registered appears in init, doctor, help, completion, the image, the rules of the configuration, and
// the default sandbox, in which it works without its key.
func TestNewAgentIsEverywhere(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, doIt), newRepository(t)
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "newcomer-cli"), []byte(newcomerCLI), 0o755); err != nil {
		t.Fatal(err)
	}
	authorized := make(chan string, 100)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorized <- r.URL.Path + " " + r.Header.Get("Authorization")
		http.NotFound(w, r)
	}))
	t.Cleanup(service.Close)
	env := []string{
		"RALPH_TEST_NEW_AGENT=1", "PATH=" + tools + ":" + os.Getenv("PATH"), "NEWCOMER_KEY=the-real-newcomer-key",
		"RALPH_AGENT=", "RALPH_AGENT_COMMAND=", "RALPH_SANDBOX=",
	}
	run := func(status int, wants []string, args ...string) {
		t.Helper()
		p := s.start(t, r, env, args...)
		if _ = p.Wait(); p.ProcessState.ExitCode() != status {
			t.Fatalf("ralph %s: %s\n%s", strings.Join(args, " "), p.ProcessState, p.out.String())
		}
		for _, want := range wants {
			if out := p.out.String(); !strings.Contains(out, want) {
				t.Errorf("ralph %s: no %q in\n%s", strings.Join(args, " "), want, out)
			}
		}
	}
	run(2, []string{"--agent (claude-code, codex, newcomer, or command with"}, "init")
	run(0, nil, "init", "--agent", "newcomer", "--sandbox", "auto", "--gate", "test -f hello.txt")
	for name, want := range map[string]string{".ralph/Dockerfile": "RUN npm install --global newcomer-cli@1.0.0\n", ".ralph/.env.example": "NEWCOMER_KEY=\n"} {
		if text, err := os.ReadFile(filepath.Join(string(r), name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: no %q in\n%s (%v)", name, want, text, err)
		}
	}
	run(0, []string{"newcomer: newcomer 1.0", "newcomer: NEWCOMER_KEY is set"}, "doctor", "--sandbox=none", "--skip-permissions")
	run(0, []string{"newcomer)", "eager)"}, "work", "--help-all")
	run(0, []string{"newcomer\n"}, "__complete", "work", "--agent", "")
	run(0, []string{"eager\n"}, "__complete", "work", "--effort", "")
	run(2, []string{`--effort: "lzy" is not one of`, `did you mean lazy?`}, "work", "--effort=lzy")
	if runtime.GOOS != "linux" {
		return // the default sandbox is Linux's
	}
	r.write(t, ".ralph/backlog/greet.md", "---\ntitle: Greet\nlabels: [no-human]\n---\nWrite hello.txt.\n")
	r.commit(t, "a backlog")
	run(0, []string{"succeeded"}, "work", "--effort=lazy", "--agent-upstream", service.URL)
	if got := <-authorized; got != "/v1/info/refs Bearer the-real-newcomer-key" {
		t.Errorf("the service got %q", got)
	}
	if n := r.commits(t, "ralph/greet"); n != 1 {
		t.Errorf("%d commits", n)
	}
	s.clean(t, r)
}
