package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/e2e/mockmodel"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/sandboxes"
)

// realCLI is a real program with the settings that direct it to the mock model.
type realCLI struct {
	agent   agents.Agent
	program string
	model   string
	// settings writes the program's configuration into its home and returns its environment.
	settings func(t *testing.T, home, url string) []string
}

func realCLIs() []realCLI {
	return []realCLI{
		{agents.Claude{}, "claude", "sonnet", func(_ *testing.T, _, url string) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sk-ant-none",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
				"DISABLE_AUTOUPDATER=1",
				"CLAUDE_CODE_MAX_RETRIES=1",
				"IS_SANDBOX=1", // without it claude refuses to skip permissions as root
			}
		}},
		{agents.Codex{}, "codex", "gpt-5.5", func(t *testing.T, home, url string) []string {
			dir := filepath.Join(home, ".codex")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			config := fmt.Sprintf(`model_provider = "mock"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
apps = false
plugins = false
remote_plugin = false
[model_providers.mock]
name = "mock"
base_url = "%s/v1"
env_key = "MOCK_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`, url)
			if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"MOCK_API_KEY=none"}
		}},
	}
}

// eachCLI runs the test with each real program, or only with the named one unless everything is tested.
func eachCLI(t *testing.T, test func(t *testing.T, c realCLI), alone ...string) {
	t.Parallel()
	if os.Getenv("RALPH_E2E_AGENTS") == "off" {
		t.Skip("RALPH_E2E_AGENTS=off")
	}
	for _, c := range realCLIs() {
		if only := strings.Join(alone, ""); only != "" && only != c.program && !everything() {
			continue
		}
		t.Run(c.program, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// rig is a real program in a repository, with a model that plays one scenario.
type rig struct {
	realCLI
	repo    repository
	model   *mockmodel.Server
	sandbox sandboxes.Sandbox
	mark    string // in the environment of every process of the agent
	base    string // commit from which the agent starts
	events  []loop.Event
}

func newRig(t *testing.T, c realCLI, scenario string) *rig {
	t.Helper()
	bin, err := filepath.Abs("../.tools/npm/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, c.program)); err != nil {
		t.Fatalf("the real %s is not there (%v); run e2e/agents/install.sh, or set RALPH_E2E_AGENTS=off to do without", c.program, err)
	}
	r := &rig{realCLI: c, repo: newRepository(t), model: mockmodel.New(mockmodel.Options{Scenario: scenario})}
	r.base = r.repo.git(t, "rev-parse", "HEAD")
	url, err := r.model.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.model.Close(); err != nil {
			t.Error(err)
		}
	})
	home := t.TempDir()
	run := strings.ReplaceAll(t.Name(), "/", "-") + "-" + filepath.Base(filepath.Dir(home))
	r.mark = "RALPH_MARK=" + run
	env := []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8",
		// Requests to hosts other than loopback reach the mock model as proxy requests, so tests notice them.
		"HTTP_PROXY=" + url, "HTTPS_PROXY=" + url, "http_proxy=" + url, "https_proxy=" + url,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}
	env = slices.Concat(env, gitEnv(), c.settings(t, home, url))
	r.sandbox, err = sandboxes.NewNone(sandboxes.NoneConfig{Env: env}).
		Open(t.Context(), sandboxes.Spec{Run: run, Worktree: string(r.repo)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.sandbox.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		noneLeft(t, r.mark)
		for _, q := range r.model.Requests() {
			if q.Method == http.MethodConnect || strings.Contains(q.Path, "://") {
				t.Errorf("%s asked for the network: %s %s", c.program, q.Method, q.Path)
			}
		}
	})
	return r
}

// options are the user's options in every test.
func (r *rig) options() agents.Options {
	return agents.Options{Model: r.realCLI.model, SkipPermissions: true}
}

// run runs the loop to its end, with the test's changes to its configuration.
func (r *rig) run(t *testing.T, change func(*loop.Config)) loop.Result {
	t.Helper()
	c := loop.Config{
		Agent: r.agent, Options: r.options(), Sandbox: r.sandbox,
		Prompt:        prompt.Prompt{Template: "Work on issue fix-it.\nFeedback: {{feedback}}\n", Name: "prompt.md"},
		Import:        r.importWork(t),
		MaxIterations: 1,
		Timers:        loop.Timers{Interrupt: 5 * time.Second},
		Observe:       func(e loop.Event) { r.events = append(r.events, e) },
	}
	if change != nil {
		change(&c)
	}
	res := loop.Run(t.Context(), c)
	t.Logf("%s: end %s, error %v, failure %v, message %.200q", r.program, res.End, res.Err, res.Failure, res.Message)
	for _, it := range res.Iterations {
		t.Logf("  iteration %d: %s, status %d, signal %q, failure %v, %d commits, %s, %+v",
			it.Number, it.Ending, it.ExitCode, it.Signal, it.Failure, it.Commits, it.Duration.Round(time.Millisecond), it.Usage)
	}
	noneLeft(t, r.mark)
	return res
}

// importWork counts the commits in the checkout itself.
func (r *rig) importWork(t *testing.T) func(context.Context) (loop.Work, error) {
	before := 0
	return func(context.Context) (loop.Work, error) {
		tip := r.repo.git(t, "rev-parse", "HEAD")
		n := len(r.repo.lines(t, "rev-list", r.base+".."+tip))
		w := loop.Work{Tip: tip, Commits: n, New: n - before}
		before = n
		return w, nil
	}
}

// saw counts the agent's events of this kind.
func (r *rig) saw(kind agents.EventKind) int {
	n := 0
	for _, e := range r.events {
		if e.Agent != nil && e.Agent.Kind == kind {
			n++
		}
	}
	return n
}
