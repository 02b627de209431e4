package git

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// repo is a real repository with one commit on main.
type repo struct {
	*testing.T
	dir string
	Runner
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "project")
	common := filepath.Join(dir, ".git")
	r := &repo{T: t, dir: dir, Runner: New(t.TempDir()).Pin(common, common, dir)}
	if out, err := exec.Command("git", "init", "-q", "-b", "main", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.git("commit", "-q", "--allow-empty", "-m", "first")
	return r
}

// git runs git as the user does.
func (r *repo) git(args ...string) string {
	r.Helper()
	out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) files() refFiles { return refFiles{common: filepath.Join(r.dir, ".git")} }
