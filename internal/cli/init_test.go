package cli

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/config"
)

func TestInit(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "init", "--agent", "claude-code", "--sandbox", "none", "--model", "some: model", "--gate", "go test ./... # all")
	if got.status != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout, "Wrote ROOT/repo/.ralph:\n") || !strings.Contains(got.stdout, "Next:\n") {
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
		"agent": "claude-code", "sandbox": "none", "model": "some: model", "gate": "go test ./... # all", "labels": "no-human",
	} {
		if got := m.run(t, nil, "config", key); got.stdout != want+"\n" {
			t.Errorf("%s: got %+v, want %q", key, got, want)
		}
	}
}

// TestInitImage: the image is for the agent, and keeps what sandboxes rely on.
func TestInitImage(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"claude-code": "npm install --global @anthropic-ai/claude-code@", "codex": "npm install --global @openai/codex@",
		"command": "# Install the program that `agent-command` names here.",
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

// TestInitWizard answers the questions, wrongly at first.
func TestInitWizard(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "go.mod", "module x\n")
	answers := "cdex\n2\n\nnone\nmaybe\nyes\n\n"
	got := m.run(t, func(h *Host) { h.Interactive, h.Stdin = true, strings.NewReader(answers) }, "init")
	if got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	if !strings.Contains(got.stderr, `"cdex" is none of these; did you mean codex?`) {
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

// TestInitWizardAsksForTheProgram also when the agent was a flag.
func TestInitWizardAsksForTheProgram(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	stdin := strings.NewReader("\nmy agent 'x\nmy-agent 'a b'\n\nmake check\n")
	got := m.run(t, func(h *Host) { h.Interactive, h.Stdin = true, stdin }, "init", "--agent=command")
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

// TestInitInterrupted: Ctrl-C at a question, and the end of the input, write nothing.
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
		want(t, m, m.run(t, func(h *Host) { h.Interactive, h.Stdin = true, strings.NewReader("1\n") }, "init"))
	})
	t.Run("signal", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		interrupt := make(chan struct{})
		in, keyboard := io.Pipe()
		go func() {
			_, _ = keyboard.Write([]byte("1\n")) // taken when the second question is asked
			close(interrupt)
		}()
		want(t, m, m.run(t, func(h *Host) { h.Interactive, h.Stdin, h.Interrupt = true, in, interrupt }, "init"))
		_ = keyboard.Close()
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		h := Host{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Dir: m.repo, Interactive: true}
		if got := Run(canceled(t), []string{"init"}, h); got != 130 {
			t.Errorf("status %d", got)
		}
	})
}

// TestExampleIssueIsNotPickedUp: what init writes is no work.
func TestExampleIssueIsNotPickedUp(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if got := m.run(t, nil, "init", "--agent=codex", "--sandbox=none"); got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	backlog, err := backlog(config.Config{Local: config.Local{Dir: filepath.Join(m.repo, ".ralph/backlog")}}, t.TempDir())
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

func TestGuessGate(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"go.mod": "go vet ./... && go test ./...", "package.json": "npm test", "README": ""} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := guessGate(dir); got != want {
			t.Errorf("%s: %q", file, got)
		}
	}
}
