package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/gittest"
)

// repository is the path of a test's checkout.
type repository string

// gitEnv makes git behave the same on every machine: no configuration of the host, and a fixed identity.
func gitEnv() []string {
	return append(gittest.Quiet(),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.invalid",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.invalid",
	)
}

// newRepository creates a repository with one commit on main.
func newRepository(t testing.TB) repository {
	t.Helper()
	r := repository(filepath.Join(t.TempDir(), "repo"))
	if err := os.Mkdir(string(r), 0o755); err != nil {
		t.Fatal(err)
	}
	r.git(t, "init", "--quiet", "--initial-branch=main")
	r.write(t, "README.md", "# test\n")
	r.commit(t, "start")
	return r
}

// newRemote creates a bare repository, adds it to r as origin and pushes main.
func newRemote(t testing.TB, r repository) repository {
	t.Helper()
	bare := repository(filepath.Join(t.TempDir(), "remote.git"))
	r.git(t, "init", "--quiet", "--bare", "--initial-branch=main", string(bare))
	r.git(t, "remote", "add", "origin", string(bare))
	r.git(t, "push", "--quiet", "--set-upstream", "origin", "main")
	return bare
}

// clone clones r.
func (r repository) clone(t testing.TB) repository {
	t.Helper()
	c := repository(filepath.Join(t.TempDir(), "clone"))
	r.git(t, "clone", "--quiet", string(r), string(c))
	return c
}

// git runs git in r and returns its output without the last line end.
func (r repository) git(t testing.TB, args ...string) string {
	t.Helper()
	out, err := r.try(args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// try is like git but may fail.
func (r repository) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = string(r)
	cmd.Env = append(os.Environ(), gitEnv()...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// lines returns the lines of git's output, or nil if it is empty.
func (r repository) lines(t testing.TB, args ...string) []string {
	t.Helper()
	out := r.git(t, args...)
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// write creates a file of the checkout, and its folder.
func (r repository) write(t testing.TB, path, text string) {
	t.Helper()
	full := filepath.Join(string(r), path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commit commits everything in the checkout.
func (r repository) commit(t testing.TB, message string) {
	t.Helper()
	r.git(t, "add", "--all")
	r.git(t, "commit", "--quiet", "--message", message)
}

// issue returns the text of an issue in the backlog.
func (r repository) issue(t *testing.T, key string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(string(r), ".ralph", "backlog", key+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
