package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// A gate that no canary makes fail is reported once, however many issues are worked.
func TestWorkSaysOnceThatNoCanaryIsNoticed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.write(t, "go.mod", "module x\n")
	m.write(t, "x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n")
	m.write(t, "test_x.py", "def test_x():\n    assert 1 == 1\n")
	m.commit(t)
	agent := filepath.Join(m.program(t, "agent", "echo more >f; git add f; git -c user.name=a -c user.email=a@example.org commit -qm more; echo '<promise>COMPLETE</promise>'\n"), "agent")
	got := m.run(t, nil, "work", "--sandbox=none", "--skip-permissions", "--commit-author=A <a@b.c>", "--agent-command="+agent, "--gate=true")
	if got.status != exit.OK || strings.Count(got.stderr, "with each of 2 canaries, tests that must fail: ") != 1 ||
		strings.Count(got.stderr, "does not notice the canary") != 1 || strings.Count(got.stderr, "does not notice it on the base either") != 1 {
		t.Errorf("got %+v", got)
	}
}
