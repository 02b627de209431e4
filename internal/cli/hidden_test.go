package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// A sparse checkout without the configuration is refused: the gate would not run, and init would write a second configuration.
func TestConfigurationThatASparseCheckoutLeavesOut(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/config.yaml", "gate: [\"true\"]\n")
	m.write(t, "src/f", "x")
	m.commit(t)
	if out, err := exec.CommandContext(t.Context(), "git", "-C", m.repo, "sparse-checkout", "set", "src").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"init", "--yes"}, {"config"}, {"work"}, {"doctor"}} {
		got := m.run(t, nil, args...)
		const want = ".ralph/config.yaml is in the repository, but not in this sparse checkout; add it with: git sparse-checkout add .ralph"
		if got.status == exit.OK || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if _, err := os.Stat(filepath.Join(m.repo, ".ralph")); !os.IsNotExist(err) {
		t.Errorf("init wrote: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", m.repo, "sparse-checkout", "add", ".ralph").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.trust(t)
	if got := m.run(t, nil, "config", "gate"); got.stdout != "true\n" {
		t.Errorf("after the hint: %+v", got)
	}
}
