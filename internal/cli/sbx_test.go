package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

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

// Doctor reports whether sbx is installed, and whether it has the agent's credential.
func TestDoctorSbx(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/config.yaml", "agent: claude-code\nsandbox: sbx\n")
	bin := filepath.Join(m.root, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	doctor := func(env ...string) string {
		got := m.run(t, func(h *compose.Host) {
			h.Env = append([]string{"HOME=" + m.home, "PATH=" + bin + ":/usr/bin:/bin"}, env...)
		}, "doctor")
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
	if !strings.Contains(got, "sbx: works") || !strings.Contains(got, "sbx has no secret for anthropic, and ANTHROPIC_API_KEY is not set") ||
		!strings.Contains(got, "ralph sandbox login --oauth anthropic") {
		t.Errorf("without a secret: %s", got)
	}
	if got := doctor("ANTHROPIC_API_KEY=k"); !strings.Contains(got, "sbx: works") || strings.Contains(got, "sbx has no secret") {
		t.Errorf("with a key: %s", got)
	}
}
