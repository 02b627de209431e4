package worktree

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/importer"
)

// fixture is a real repository with one commit on main, and a state folder.
type fixture struct {
	*testing.T
	dir   string // the user's checkout
	state string
	repo  *Repo
	// layered makes private trees use a layer.
	layered bool
}

// newLayered returns a fixture whose private trees use a layer. Only Linux supports layers.
func newLayered(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.layered = true
	f.open(Options{})
	t.Cleanup(func() { _ = disk.RemoveAll(f.state) })
	return f
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

// realDir returns a temporary folder whose path has no links.
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
	if f.layered {
		o.Layers, o.LayerMinFiles = 1<<30, 1
	}
	o.StateDir, o.Log = f.state, slog.New(slog.NewTextHandler(f.Output(), nil))
	r, err := Open(context.Background(), f.dir, o)
	if err != nil {
		f.Fatal(err)
	}
	f.repo = r
	return r
}

// sh runs a program as the user or the agent, and returns its output.
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

// commit makes a commit of one file, as an agent does.
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

// add makes a tree and opens it for an agent.
func (f *fixture) add(key, run string) *Tree {
	f.Helper()
	return f.addSpec(f.spec(key, run))
}

func (f *fixture) addSpec(s Spec) *Tree {
	f.Helper()
	tree, err := f.repo.Add(context.Background(), s)
	if err != nil {
		f.Fatal(err)
	}
	f.use(tree)
	return tree
}

// use opens the tree for an agent.
func (f *fixture) use(t *Tree) Private {
	f.Helper()
	p, err := t.Sandbox(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	return p
}

// boxed returns the sandbox of a private tree, a shell on the host with its own environment; nil for other trees.
func boxed(t *Tree) Inside {
	if !t.Spec().Private {
		return nil
	}
	return func(ctx context.Context, c Command) (int, error) {
		argv := merged(t, c.Argv)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = t.Dir(), append([]string{"PATH=" + os.Getenv("PATH")}, c.Env...)
		if t.Layered() {
			cmd.Env = append(cmd.Env, importer.ChangesEnv+"="+changesPlace)
		}
		cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
		err := cmd.Run()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			err = nil
		}
		return cmd.ProcessState.ExitCode(), err
	}
}

// changesPlace is where a tree's own folder is mounted separately.
const changesPlace = "/mnt"

// merged returns a command that runs with the tree mounted over its layer, if it has one.
func merged(t *Tree, argv []string) []string {
	name := t.record().Layer
	if name == "" {
		return argv
	}
	const mount = `mkdir -p "$3/work"; mount --bind "$2" ` + changesPlace + `; mount -o remount,bind,ro ` + changesPlace + `; mount -t overlay overlay -o "userxattr,lowerdir=$1,upperdir=$2,workdir=$3/work" "$2"; cd "$2"; shift 3; exec "$@"`
	return append([]string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", mount, "sh", t.repo.layers().Tree(name), t.Dir(), t.folder()}, argv...)
}

// imported imports the tree and opens it for the agent again.
func (f *fixture) imported(t *Tree) Import {
	f.Helper()
	got, err := t.Import(context.Background(), boxed(t))
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

// ref returns the commit of a ref, or "".
func (f *fixture) ref(name string) string {
	f.Helper()
	return f.git("for-each-ref", "--format=%(objectname)", name)
}

// show returns a file's content in a commit.
func (f *fixture) show(commit, path string) string {
	f.Helper()
	return f.git("show", commit+":"+path)
}

// none fails the test if the marker exists that hostile configuration would make.
func (f *fixture) none(marker string) {
	f.Helper()
	if _, err := os.Lstat(marker); err == nil {
		f.Fatalf("hostile code has run: %s exists", marker)
	}
}

// claimTTL is the TTL of the tests' claims.
const claimTTL = time.Hour

// withRemote adds a bare remote named origin and opens the repository with it.
func (f *fixture) withRemote() (bare string) {
	f.Helper()
	bare = filepath.Join(realDir(f), "origin.git")
	f.sh("", "git", "init", "-q", "--bare", "-b", "main", bare)
	f.git("remote", "add", "origin", bare)
	f.git("push", "-q", "origin", "main")
	f.open(Options{Remote: "origin"})
	return bare
}

// clone makes another clone of the same remote.
func (f *fixture) clone(bare string) *fixture {
	f.Helper()
	c := &fixture{T: f.T, dir: filepath.Join(realDir(f), "clone"), state: filepath.Join(realDir(f), "state")}
	c.sh("", "git", "clone", "-q", bare, c.dir)
	c.open(Options{Remote: "origin"})
	return c
}
