package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// fixture is a real repository with one commit on main and a state folder.
type fixture struct {
	*testing.T
	dir   string // the user's checkout
	state string
	repo  *Repo
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return fixtureAt(t, filepath.Join(realDir(t), "project"))
}

func fixtureAt(t *testing.T, dir string) *fixture {
	t.Helper()
	f := &fixture{T: t, dir: dir, state: filepath.Join(realDir(t), "state")}
	f.sh("", "git", "init", "-q", "-b", "main", dir)
	f.write(dir, "a.txt", "one\n")
	f.write(dir, ".gitignore", "ignored/\n")
	f.git("add", ".")
	f.git("commit", "-q", "-m", "first")
	f.open(Options{})
	return f
}

// realDir is a temporary folder without links in its path.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (f *fixture) open(o Options) *Repo {
	f.Helper()
	o.StateDir, o.Log = f.state, zerolog.New(zerolog.NewTestWriter(f.T))
	r, err := Open(context.Background(), f.dir, o)
	if err != nil {
		f.Fatal(err)
	}
	f.repo = r
	return r
}

// sh runs a program as the user or the agent would, and returns its output.
func (f *fixture) sh(dir, name string, args ...string) string {
	f.Helper()
	out, err := f.try(dir, name, args...)
	if err != nil {
		f.Fatalf("%s %v in %s: %v\n%s", name, args, dir, err, out)
	}
	return out
}

func (f *fixture) try(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// git runs git in the user's checkout.
func (f *fixture) git(args ...string) string {
	f.Helper()
	return f.sh(f.dir, "git", args...)
}

func (f *fixture) write(dir, name, content string) {
	f.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) read(elem ...string) string {
	f.Helper()
	content, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		f.Fatal(err)
	}
	return string(content)
}

// commit makes a commit of one file, as the agent would.
func (f *fixture) commit(dir, name, content, message string) string {
	f.Helper()
	f.write(dir, name, content)
	f.sh(dir, "git", "add", "--", name)
	f.sh(dir, "git", "commit", "-q", "-m", message)
	return f.sh(dir, "git", "rev-parse", "HEAD")
}

func (f *fixture) base() Base {
	f.Helper()
	b, err := f.repo.Base(context.Background(), "main")
	if err != nil {
		f.Fatal(err)
	}
	return b
}

func (f *fixture) spec(key, run string) Spec {
	f.Helper()
	return Spec{Run: run, Key: key, Branch: "ralph/" + key, Base: f.base()}
}

func (f *fixture) add(key, run string) *Tree {
	f.Helper()
	tree, err := f.repo.Add(context.Background(), f.spec(key, run))
	if err != nil {
		f.Fatal(err)
	}
	return tree
}

func (f *fixture) handBack(t *Tree) HandBack {
	f.Helper()
	got, err := t.HandBack(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	return got
}

func (f *fixture) remove(t *Tree) {
	f.Helper()
	if err := t.Remove(context.Background()); err != nil {
		f.Fatal(err)
	}
}

// ref is where a ref is; empty when it does not exist.
func (f *fixture) ref(name string) string {
	f.Helper()
	return f.git("for-each-ref", "--format=%(objectname)", name)
}

// show is a file's content in a commit.
func (f *fixture) show(commit, path string) string {
	f.Helper()
	return f.git("show", commit+":"+path)
}

// none fails the test when a marker that hostile configuration would make exists.
func (f *fixture) none(marker string) {
	f.Helper()
	if _, err := os.Lstat(marker); err == nil {
		f.Fatalf("hostile code has run: %s exists", marker)
	}
}
