package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// TestDotEnv checks that only keys that ralph looks for by name are read, and that a file of the repository is refused.
func TestDotEnv(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.write(t, ".ralph/.gitignore", ".env\n")
	m.commit(t)
	args := []string{"doctor", "--agent=claude-code", "--sandbox=none", "--agent-env", "MINE", "--agent-env", "OTHER=x"}
	if got := m.run(t, nil, args...); !strings.Contains(got.stdout, "MINE is not set") {
		t.Errorf("got %+v", got)
	}
	m.write(t, ".ralph/.env", "# mine\nexport ANTHROPIC_API_KEY='sk-secret'\nMINE=yes\nRALPH_SANDBOX=docker\nPATH=/nowhere\n")
	got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "PATH=/usr/bin:/bin") }, args...)
	if strings.Contains(got.stdout, "MINE is not set") || !strings.Contains(got.stdout, "sandbox       none:") || strings.Contains(got.stdout, "sk-secret") {
		t.Errorf("got %+v", got)
	}
	m.write(t, ".ralph/.env", "ANTHROPIC_API_KEY=sk-secret\nsk-secret\n")
	if got := m.run(t, nil, args...); !strings.Contains(got.stdout+got.stderr, ".ralph/.env: a line is neither NAME=VALUE") || strings.Contains(got.stdout+got.stderr, "sk-secret") {
		t.Errorf("got %+v", got)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", m.repo, "add", "-f", ".ralph/.env").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if got := m.run(t, nil, args...); !strings.Contains(got.stdout+got.stderr, "is tracked by git") {
		t.Errorf("got %+v", got)
	}
}
