package sandboxtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Git tests a commit inside to a private repository that borrows objects from another repository, with the host's git: for
// providers that mount the host's git.
func Git(t *testing.T, p sandboxes.Provider) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(bytes.TrimSpace(out))
	}
	git("init", "--quiet", "user")
	git("-C", "user", "commit", "--quiet", "--allow-empty", "-m", "base")
	base := git("-C", "user", "rev-parse", "HEAD")
	objects := filepath.Join(dir, "user", ".git", "objects")
	git("-C", "user", "worktree", "add", "--quiet", filepath.Join(dir, "tree"))
	git("init", "--quiet", "--bare", "private")
	git("-C", "private", "config", "core.bare", "false")
	if err := os.WriteFile(filepath.Join(dir, "private/objects/info/alternates"), []byte(objects+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("-C", "private", "update-ref", "HEAD", base)

	box := openBox(t.Context(), t, p, sandboxes.Spec{
		Run: "git-" + dir, Worktree: filepath.Join(dir, "tree"), GitDir: filepath.Join(dir, "private"), Objects: []string{objects},
	})
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Stdout: &out, Stderr: &out, Argv: []string{"sh", "-ec", `
		git config --global user.name a; git config --global user.email a@b
		echo new >file; git add file; git commit -qm inside; git gc -q; git status --porcelain; git log --format=%s`}})
	if err != nil || !exit.OK() || out.String() != "inside\nbase\n" {
		t.Errorf("%+v, %v, %s", exit, err, &out)
	}
	if got := git("--git-dir", filepath.Join(dir, "user", ".git"), "rev-parse", "HEAD"); got != base {
		t.Errorf("the user's repository is at %s, not %s", got, base)
	}
	if got := git("--git-dir", filepath.Join(dir, "private"), "log", "--format=%s"); got != "inside\nbase" {
		t.Errorf("the private repository has %q", got)
	}
}
