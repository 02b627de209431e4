package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/worktree/git"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	os.Exit(m.Run())
}

// The last value of the user's core.sshCommand is used for the remote.
func TestSSHCommand(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(t.TempDir(), "asked")
	for _, args := range [][]string{
		{"init", "-q"},
		{"remote", "add", "origin", "ssh://host/project"},
		{"config", "core.sshCommand", "false"},
		{"config", "--add", "core.sshCommand", "touch " + marker + " #"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	common := filepath.Join(dir, ".git")
	r, err := Open(t.Context(), git.New(dir).Pin(common, common, dir), dir, Options{Name: "origin"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.RemoteGit.RemoteRefs(t.Context(), "origin"); err == nil {
		t.Error("a program that is no ssh has answered")
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error(err)
	}
}
