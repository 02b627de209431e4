package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// A local branch that this clone began, before another clone did the work, does not hide the remote's branch.
func TestVerifyLooksAtTheRemoteFirst(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
	key, bare := filepath.Join(m.root, "key"), filepath.Join(m.root, "bare")
	command := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = m.repo
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	command("git", "init", "--quiet", "--bare", bare)
	command("git", "push", "--quiet", bare, "HEAD")
	m.remote(t, bare)
	m.own(t, "proof-key: "+key+"\n")
	if got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--gate=true", "--skip-permissions", "--agent-command="+committing); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	tip := command("git", "rev-parse", "ralph/a")
	command("git", "update-ref", "refs/heads/ralph/a", tip+"^")
	for range 8 { // the result used to be random
		got := m.run(t, nil, "verify", "a")
		if got.status != exit.Failed || !strings.Contains(got.stdout, tip) || !strings.Contains(got.stdout, "the branch here is at") {
			t.Fatalf("%+v", got)
		}
	}
}
