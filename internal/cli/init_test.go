package cli

import (
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/tracker/local"
)

func TestInit(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "init", "--agent", "claude-code", "--sandbox", "none", "--model", "*some:model", "--gate", "go test ./... # all")
	if got.status != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout, "Wrote ROOT/repo/.ralph:\n") || !strings.Contains(got.stdout, "Next:\n") || !strings.Contains(got.stdout, ". Commit .ralph to use it in other clones. ") {
		t.Errorf("got %+v", got)
	}
	var names []string
	err := fs.WalkDir(os.DirFS(m.repo), ".ralph", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, ".ralph/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".env.example", ".gitignore", "Dockerfile", "backlog/example.md", "config.yaml", "prompt.md"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if entries, _ := os.ReadDir(m.repo); len(entries) != 2 {
		t.Errorf("left beside .git and .ralph: %v", entries)
	}
	for key, want := range map[string]string{
		"agent": "claude-code", "sandbox": "none", "model": "*some:model", "gate": "go test ./... # all", "labels": "no-human",
	} {
		if got := m.run(t, nil, "config", key); got.stdout != want+"\n" {
			t.Errorf("%s: got %+v, want %q", key, got, want)
		}
	}
	written, err := os.ReadFile(filepath.Join(m.repo, ".ralph", "config.yaml"))
	publish, _ := keys.Lookup("publish")
	if want := "commits are published: " + strings.Join(publish.Choices, ", ") + "\n"; err != nil || !strings.Contains(string(written), want) {
		t.Errorf("%s lacks %q (%v)", written, want, err)
	}
}

// Root is first told that containers will be refused, and no image is built before that is settled.
func TestInitAsRoot(t *testing.T) {
	t.Parallel()
	root := os.Getuid() == 0
	for _, c := range []struct {
		sandbox, user string
		told          bool
	}{{"docker", "", root}, {"native", "", false}, {"docker", "1000:1000", false}} {
		m := newMachine(t)
		bin := m.program(t, "docker", "echo docker $1\n")
		got := m.run(t, func(h *compose.Host) {
			h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "RALPH_CONTAINER_USER=" + c.user}
		}, "init", "--yes", "--agent=codex", "--sandbox="+c.sandbox)
		built := c.sandbox == "docker" && !c.told
		if got.status != 0 || strings.Contains(got.stdout, "Next:\n  1. You are root") != c.told || strings.Contains(got.stdout, "\nBuilt ralph:") != built {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

func TestInitQuiet(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "init", "-q", "--agent=codex", "--sandbox=none")
	if _, err := os.Stat(filepath.Join(m.repo, ".ralph", "config.yaml")); got.status != 0 || got.stdout+got.stderr != "" || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestInitAfterNew checks that issues written before init do not prevent it from writing a configuration.
func TestInitAfterNew(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	if got := m.run(t, nil, "new", "First issue", "--body=x"); got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	if got := m.run(t, nil, "doctor"); !strings.Contains(got.stdout, "warn  config ") || !strings.Contains(got.stdout, "fix: ralph init\n") {
		t.Errorf("doctor: %+v", got)
	}
	got := m.run(t, nil, "init", "--agent=codex", "--sandbox=none")
	if got.status != 0 || !strings.Contains(got.stdout, "\n  config.yaml\n") || strings.Contains(got.stdout, "example.md") {
		t.Errorf("got %+v", got)
	}
	if entries, err := os.ReadDir(filepath.Join(m.repo, ".ralph", "backlog")); err != nil || len(entries) != 1 || entries[0].Name() != "first-issue.md" {
		t.Errorf("the backlog has %v, %v", entries, err)
	}
	if got := m.run(t, nil, "doctor"); strings.Contains(got.stdout, "warn  config ") {
		t.Errorf("doctor: %+v", got)
	}
}

// TestInitImage checks that the image has the agent, and keeps what sandboxes rely on.
func TestInitImage(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"claude-code": "npm install --global @anthropic-ai/claude-code@", "codex": "npm install --global @openai/codex@",
		"command": "# Install the agent's program here.",
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			args := []string{"init", "--sandbox=none", "--agent", agent}
			if agent == "command" {
				args = append(args, "--agent-command", "my-agent 'a b'")
			}
			if got := m.run(t, nil, args...); got.status != 0 {
				t.Fatalf("got %+v", got)
			}
			text, err := os.ReadFile(filepath.Join(m.repo, ".ralph/Dockerfile"))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{want, "ARG AGENT_UID=1000", "groupmod -o", "usermod -o", "USER ${AGENT_UID}:${AGENT_GID}", "ENV HOME=/home/agent"} {
				if !strings.Contains(string(text), line) {
					t.Errorf("no %q in\n%s", line, text)
				}
			}
			if got := m.run(t, nil, "config", "agent"); got.stdout != agent+"\n" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// The image has the tools of the proposed checks.
func TestInitImageOfAProject(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"README":       "# Install what your setup and gate commands need here.\n",
		"package.json": "# Install what your setup and gate commands need here.\n",
		"setup.py":     "# For your setup and gate commands. Add what else they need.\nRUN apt-get update \\\n && apt-get install -y --no-install-recommends python3 python3-venv ",
		"go.mod":       " golang-go gcc libc6-dev \\\n && rm -rf /var/lib/apt/lists/*\nRUN cd \"$(mktemp -d)\" && export GOPATH=/opt/go ",
	} {
		m := newMachine(t)
		m.write(t, file, "x")
		if got := m.run(t, nil, "init", "--sandbox=docker", "--agent=codex"); got.status != 0 {
			t.Fatalf("%+v", got)
		}
		text, err := os.ReadFile(filepath.Join(m.repo, ".ralph/Dockerfile"))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: no %q (%v) in\n%s", file, want, err, text)
		}
	}
}

// Tools that ralph cannot install are named where a person has to add them, and no image that cannot run the gate is built.
func TestInitImageLacks(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "a.csproj", "<Project/>")
	m.write(t, "package.json", `{"dependencies":{}}`)
	bin := m.program(t, "podman", "exit 1\n")
	got := m.run(t, func(h *compose.Host) { h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH")} },
		"init", "--yes", "--sandbox=podman", "--agent=codex")
	next := ". Write into .ralph/Containerfile how to install dotnet, which setup or gate runs: ralph knows no package for this.\n"
	if got.status != 0 || strings.Contains(got.stdout, "Built ") || !strings.Contains(got.stdout, next) || !strings.Contains(got.stdout, ". ralph image build ") {
		t.Errorf("%+v, want %q", got, next)
	}
	text, err := os.ReadFile(filepath.Join(m.repo, ".ralph/Containerfile"))
	if want := "# Install dotnet here, which your setup or gate runs.\n"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("no %q (%v) in\n%s", want, err, text)
	}
}

// The image has the programs of all agents and of the reviewer, and the configuration names them.
func TestInitImageOfAChain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "init", "--agent", "claude-code", "--sandbox", "podman", "--gate", "true",
		"--fallback", "codex", "--attempt", "claude-code:opus", "--attempt", "codex:big", "--review", "codex:small")
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	image, err := os.ReadFile(filepath.Join(m.repo, ".ralph", "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"RUN npm install --global @anthropic-ai/claude-code@", "RUN npm install --global @openai/codex@",
	} {
		if strings.Count(string(image), want) != 1 {
			t.Errorf("not once %q:\n%s", want, image)
		}
	}
	keys, err := os.ReadFile(filepath.Join(m.repo, ".ralph", ".env.example"))
	if err != nil || !strings.Contains(string(keys), "ANTHROPIC_API_KEY=") || !strings.Contains(string(keys), "\nCODEX_API_KEY=") {
		t.Errorf("%s, %v", keys, err)
	}
	for key, want := range map[string]string{"fallback": "codex", "attempts": "claude-code:opus\ncodex:big", "review": "codex:small"} {
		if got := m.run(t, nil, "config", key); got.stdout != want+"\n" {
			t.Errorf("%s: got %+v, want %q", key, got, want)
		}
	}
	for _, other := range []string{"--fallback=no-such", "--review=command"} {
		if got := newMachine(t).run(t, nil, "init", "--agent", "codex", "--sandbox", "none", other); got.status != exit.Usage {
			t.Errorf("%s: %+v", other, got)
		}
	}
}

// TestInitWizard answers the questions, some of them wrongly at first.
func TestInitWizard(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "go.mod", "module x\n")
	answers := "cdex\n2\n\nnone\nmaybe\nyes\n\n\n"
	got := m.run(t, func(h *compose.Host) { h.Interactive, h.Stdin = true, strings.NewReader(answers) }, "init")
	if got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	if !strings.Contains(got.stderr, `"cdex" is not in the list; did you mean codex?`) {
		t.Errorf("got %s", got.stderr)
	}
	for key, want := range map[string]string{
		"agent": "codex", "sandbox": "none", "model": "", "skip-permissions": "true", "gate": "go vet ./... && go test ./...",
	} {
		if got := m.run(t, nil, "config", key); got.stdout != want+"\n" {
			t.Errorf("%s: got %+v, want %q", key, got, want)
		}
	}
}

// Every line of a question fits into 80 columns. The answers are not shown, so a prompt ends a line here.
func TestInitQuestionsFitTheTerminal(t *testing.T) {
	t.Parallel()
	for sandbox, last := range map[string]string{"none": "May the agent act", "podman": "Build the image"} {
		m := newMachine(t)
		m.write(t, "go.mod", "module x\n")
		m.write(t, "go.sum", "x\n")
		got := m.run(t, func(h *compose.Host) {
			h.Interactive, h.Stdin = true, strings.NewReader("codex\n\n"+sandbox+strings.Repeat("\n", 5))
			h.Env = append(h.Env, "RALPH_CONTAINER_USER=1000:1000")
		}, "init")
		shown := strings.NewReplacer("]: ", "]:\n", "> ", ">\n").Replace(got.stderr)
		if !strings.Contains(shown, "Where do agents") || !strings.Contains(shown, "Which command fetches") || !strings.Contains(shown, "\n  container/ring is a small") || !strings.Contains(shown, last) {
			t.Errorf("%s: a question is missing: %s", sandbox, shown)
		}
		for line := range strings.Lines(shown) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", sandbox, n, line)
			}
		}
	}
}

// A program in the repository is written relative to its top, and a missing one is reported.
func TestInitOwnProgram(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "init", "--sandbox=none", "--agent=command", "--agent-command=./nothere.sh --fast")
	if got.status != exit.OK || !strings.Contains(got.stdout, "ROOT/repo/nothere.sh: not found; install it where the agent runs") ||
		!strings.Contains(got.stdout, "\n  agent-command  ./nothere.sh --fast\n") {
		t.Errorf("got %+v", got)
	}
	text, err := os.ReadFile(filepath.Join(m.repo, ".ralph", "config.yaml"))
	if err != nil || !strings.Contains(string(text), "agent-command: [\"./nothere.sh\", \"--fast\"]\n") {
		t.Errorf("%s, %v", text, err)
	}
	if got := m.run(t, nil, "config", "agent-command"); got.stdout != "ROOT/repo/nothere.sh\n--fast\n" {
		t.Errorf("got %+v", got)
	}
}

// The proposed agent is installed, and has a login if one does.
func TestInitProposesAnAgentThatCanWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		programs, key string
		want          string
	}{
		"the only one":        {"codex", "", "codex"},
		"the only with a key": {"claude codex", "OPENAI_API_KEY=x", "codex"},
		"the first":           {"claude codex", "", "claude-code"},
		"none":                {"", "OPENAI_API_KEY=x", "claude-code"},
	} {
		m := newMachine(t)
		bin := m.program(t, "other", "")
		for _, program := range strings.Fields(c.programs) {
			m.program(t, program, "echo 1.0\n")
		}
		git, err := exec.LookPath("git")
		if err != nil {
			t.Fatal(err)
		}
		m.program(t, "git", "exec "+git+" \"$@\"\n")
		got := m.run(t, func(h *compose.Host) {
			h.Env = append(h.Env, "PATH="+bin, c.key)
			h.Interactive, h.Stdin = true, strings.NewReader("\n\nnone\nyes\ntrue\n")
		}, "init")
		if agent := m.run(t, nil, "config", "agent"); got.status != 0 || agent.stdout != c.want+"\n" || !strings.Contains(got.stderr, "name ["+c.want+"]") {
			t.Errorf("%s: %q, want %q: %+v", name, agent.stdout, c.want, got)
		}
	}
}

// TestInitWizardAsksForTheProgram checks that the question is asked even if a flag chose the agent.
func TestInitWizardAsksForTheProgram(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	stdin := strings.NewReader("\nmy agent 'x\nmy-agent 'a b'\n\nmake check\n")
	got := m.run(t, func(h *compose.Host) { h.Interactive, h.Stdin = true, stdin }, "init", "--agent=command")
	if got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	if strings.Contains(got.stderr, "as shown") {
		t.Errorf("a default that there is none of: %s", got.stderr)
	}
	if got := m.run(t, nil, "config", "agent-command"); got.stdout != "my-agent\na b\n" {
		t.Errorf("got %+v", got)
	}
}

// TestInitInterrupted checks that Ctrl-C at a question, or the end of the input, writes nothing.
func TestInitInterrupted(t *testing.T) {
	t.Parallel()
	want := func(t *testing.T, m machine, got ran) {
		t.Helper()
		if got.status != 130 || !strings.HasSuffix(got.stderr, "\nralph: interrupted; nothing was written\n") || got.stdout != "" {
			t.Errorf("got %+v", got)
		}
		if entries, _ := os.ReadDir(m.repo); len(entries) != 1 {
			t.Errorf("written: %v", entries)
		}
	}
	t.Run("end of input", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		want(t, m, m.run(t, func(h *compose.Host) { h.Interactive, h.Stdin = true, strings.NewReader("1\n") }, "init"))
	})
	t.Run("signal", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		interrupt := make(chan struct{})
		in, keyboard := io.Pipe()
		go func() {
			_, _ = keyboard.Write([]byte("1\n")) // read at the second question
			close(interrupt)
		}()
		want(t, m, m.run(t, func(h *compose.Host) { h.Interactive, h.Stdin, h.Interrupt = true, in, interrupt }, "init"))
		_ = keyboard.Close()
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		h := compose.Host{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Dir: m.repo, Interactive: true}
		if got := Run(canceled(t), []string{"init"}, h); got != 130 {
			t.Errorf("status %d", got)
		}
	})
}

// TestExampleIssueIsNotPickedUp checks that the sample issue is not worked.
func TestExampleIssueIsNotPickedUp(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if got := m.run(t, nil, "init", "--agent=codex", "--sandbox=none"); got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	backlog, err := local.New(local.Config{Dir: filepath.Join(m.repo, ".ralph/backlog"), LockDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	issue, err := backlog.Get(context.Background(), "example")
	if err != nil {
		t.Fatal(err)
	}
	if issue.HasLabel("no-human") || !issue.Open || issue.Title == "" {
		t.Errorf("got %+v", issue)
	}
}

// TestInitProposes checks the proposals for the project's tools, whose programs are in a folder that the sandbox does not show.
func TestInitProposes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want map[string]string
	}{
		"yes": {[]string{"--yes"}, map[string]string{
			"agent": "codex", "sandbox": "auto", "setup": "go mod download && (go vet ./... container/ring; go test -run '^$' ./... container/ring || true)", "gate": "go vet ./... && go test ./...", "allow": "goproxy.invalid\nsum.invalid",
			"allow-private": "127.0.0.1:8081", "agent-env": "GOPROXY=(hidden)\nGOSUMDB=(hidden)",
			"sandbox-show": "BIN", "retest": "report",
		}},
		"nothing isolated": {[]string{"--agent=codex", "--sandbox=none"}, map[string]string{"setup": "go mod download && (go vet ./... container/ring; go test -run '^$' ./... container/ring || true)", "allow": "", "agent-env": "", "sandbox-show": ""}},
		"docker":           {[]string{"--agent=codex", "--sandbox=docker"}, map[string]string{"allow": "goproxy.invalid\nsum.invalid", "sandbox-show": ""}},
		"given": {[]string{"--yes", "--setup=a", "--setup=b", "--gate=c", "--allow=d.invalid"}, map[string]string{
			"setup": "a\nb", "gate": "c", "allow": "d.invalid", "allow-private": "", "agent-env": "", "sandbox-show": "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, "go.mod", "module x\n")
			m.write(t, "go.sum", "x\n")
			m.write(t, "x_test.go", "package x\n\nfunc TestX(t *testing.T) {}\n")
			bin := t.TempDir()
			for program, script := range map[string]string{
				"agents/codex": "", "BIN/go": `if [ "$GOENV" = off ]; then echo built-in; elif [ "$2" = GOPROXY ]; then echo https://goproxy.invalid,direct
					else echo "sum.invalid http://127.0.0.1:8081"; fi`,
			} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(bin, program)), 0o755); err != nil { //nolint:gosec // programs
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // a program
					t.Fatal(err)
				}
			}
			path := func(h *compose.Host) {
				h.Env = append(slices.DeleteFunc(slices.Clone(h.Env), func(e string) bool { return strings.HasPrefix(e, "PATH=") }), "PATH="+bin+"/BIN:"+bin+"/agents:/usr/bin:/bin")
			}
			got := m.run(t, path, append([]string{"init"}, c.args...)...)
			if got.status != 0 {
				t.Fatalf("got %+v", got)
			}
			text, err := os.ReadFile(filepath.Join(m.repo, ".ralph", "config.yaml"))
			if file := string(text); err != nil || strings.Contains(file, "\n# container/ring is ") != strings.Contains(file, "./... container/ring") {
				t.Errorf("setup is explained where it is proposed, and nowhere else: %v\n%s", err, file)
			}
			if strings.Contains(got.stdout, "\n                 container/ring is ") != strings.Contains(string(text), "./... container/ring") {
				t.Errorf("the reason is not on the screen:\n%s", got.stdout)
			}
			for key, want := range c.want {
				now := m.run(t, path, "config", key)
				if now.status != 0 || strings.TrimSpace(strings.ReplaceAll(now.stdout, bin+"/", "")) != want {
					t.Errorf("%s: got %+v, want %q", key, now, want)
				}
				if line, _, _ := strings.Cut(strings.TrimSuffix(want, "(hidden)"), "\n"); want != "" && key != "agent" && key != "sandbox" && key != "agent-env" && !strings.Contains(got.stdout, line) {
					t.Errorf("%s is not shown:\n%s", key, got.stdout)
				}
			}
		})
	}
}

// TestInitShowsHostsOfTheProject checks that hosts that only the repository names are shown and never allowed, even with --yes.
func TestInitShowsHostsOfTheProject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		shown bool
	}{
		"yes":   {[]string{"--agent=codex", "--sandbox=native", "--yes"}, true},
		"none":  {[]string{"--agent=codex", "--sandbox=none"}, false},
		"given": {[]string{"--agent=codex", "--sandbox=native", "--allow=a.invalid"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, "package.json", `{"dependencies": {"x": "1"}}`)
			m.write(t, ".npmrc", "registry=https://npm.invalid/\n@us:registry=http://10.0.0.1:4873/\n")
			got := m.run(t, nil, append([]string{"init"}, c.args...)...)
			if got.status != 0 {
				t.Fatalf("got %+v", got)
			}
			if shown := strings.Contains(got.stderr, "npm.invalid (.npmrc), 10.0.0.1:4873 (.npmrc)"); shown != c.shown {
				t.Errorf("shown %v, want %v: %s", shown, c.shown, got.stderr)
			}
			for _, key := range []string{"allow", "allow-private"} {
				if now := m.run(t, nil, "config", key); strings.Contains(now.stdout, "npm.invalid") || strings.Contains(now.stdout, "10.0.0.1") {
					t.Errorf("%s: %+v", key, now)
				}
			}
		})
	}
}
