//go:build linux

package diff

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// A file of line breaks makes git use forty times its size. Git stops at its memory limit, which is a result and not a
// fault of the host.
func TestChangesOfLineBreaksEndAtTheMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "breaks"), []byte(strings.Repeat("\n", 4<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", `git init -q .; git commit -q --allow-empty -m base; git add -A; git commit -qm tip; git rev-parse HEAD~ HEAD`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(string(out))
	r := Range{Bases: ids[:1], Tip: ids[1], Commits: ids[1:], Parents: map[string][]string{ids[1]: ids[:1]}}
	nothing := func(string, []byte) {}
	g := git.New(dir).With("GIT_DIR=" + filepath.Join(dir, ".git"))
	if _, err := readLimited(t.Context(), g.WithMemory(64<<20), r, nothing); !errors.Is(err, ErrTooMuch) {
		t.Errorf("error %v, want %v", err, ErrTooMuch)
	}
	if c, err := Read(t.Context(), g, r, nothing); err != nil || len(c.Paths) != 1 {
		t.Errorf("with more memory: %v, %v", c.Paths, err)
	}
}
