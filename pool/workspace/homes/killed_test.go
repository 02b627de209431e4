package homes

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree"
)

// killedAfter, in the environment, makes this program a process that begins to make a home and is killed.
const killedAfter = "WORKSPACE_TEST_KILLED_AFTER"

// step is one step in the life of a home.
type step struct {
	name string
	do   func() error
}

// life returns the steps in the life of a commit's home, in which setup has put files into a worktree.
func life(h *Store, commit, tree string) []step {
	var f *Filling
	var list []byte
	half, made := func() string { return filepath.Join(f.dir, treeFolder) }, func() string { return filepath.Join(f.dir, madeFile) }
	name := func() string { return filepath.Join(h.Dir, f.name) }
	ctx := context.Background()
	return []step{
		{"begun", func() (err error) {
			if f, err = h.Fill(ctx, commit); err == nil && f == nil {
				err = errors.New("it is not filled")
			}
			return err
		}},
		{"filled", func() error {
			err := os.WriteFile(filepath.Join(f.dir, homeFolder, "x"), []byte("x"), 0o600)
			for _, file := range append(madeBySetup(), "go.mod") {
				path := filepath.Join(tree, file)
				err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(file), 0o600))
			}
			return err
		}},
		{"half moved", func() error {
			return errors.Join(os.Mkdir(half(), 0o700), os.Rename(filepath.Join(tree, "out"), filepath.Join(half(), "out")))
		}},
		{"moved", func() error {
			err := errors.Join(os.Rename(filepath.Join(half(), "out"), filepath.Join(tree, "out")), os.Remove(half()))
			if moved, failed := f.KeepMade(ctx, tree, commit); err == nil && (!moved || failed != nil) {
				return errors.Join(failed, errors.New("it is not moved"))
			}
			var failed error
			list, failed = os.ReadFile(made())
			return errors.Join(err, failed, os.Remove(made()))
		}},
		{"listed", func() error { return os.WriteFile(made(), list, 0o600) }},
		{"kept", func() error { f.End(ctx, true); return nil }},
		{"going", func() error { return os.Rename(name(), name()+".old") }}, // like remove
		{"half gone", func() error { return disk.RemoveAll(filepath.Join(name()+".old", treeFolder, "deps")) }},
	}
}

func madeBySetup() []string { return []string{"deps/a", "deps/b", "out"} }

// liveUntil takes the steps of a life up to and including one of them.
func liveUntil(steps []step, last string) error {
	for _, s := range steps {
		if err := s.do(); err != nil || s.name == last {
			return err
		}
	}
	return errors.New("no such step")
}

// beKilled runs in the process that is killed.
func beKilled(after string) error {
	repo, err := worktree.Open(context.Background(), os.Getenv("REPO"), worktree.Options{StateDir: os.Getenv("STATE")})
	if err != nil {
		return err
	}
	h := &Store{Dir: os.Getenv("HOMES"), MaxBytes: 1 << 20, Inputs: []string{"go.mod"}, Repo: repo, Log: slog.New(slog.DiscardHandler)}
	if err := liveUntil(life(h, os.Getenv("COMMIT"), os.Getenv("TREE")), after); err != nil {
		return err
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// A process that is killed at any step leaves either no home or a complete one. The next process uses it or makes it anew, and an
// incomplete home is removed.
func TestHomesKilled(t *testing.T) {
	t.Parallel()
	for _, s := range life(nil, "", "") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h, first, _, _ := homes(t)
			h.Inputs = []string{"go.mod"}
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), killedAfter+"="+s.name, "REPO="+h.Repo.Dir(), "STATE="+t.TempDir(), "HOMES="+h.Dir, "COMMIT="+first, "TREE="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() >= 0 {
				t.Fatalf("not killed: %v\n%s", err, out)
			}
			whole := s.name == "kept"
			if is := isWhole(t, h, first); is != whole {
				t.Errorf("a home is used: %v", is)
			}
			if !whole {
				if err := liveUntil(life(h, first, t.TempDir()), "kept"); err != nil {
					t.Errorf("it is not made anew: %v", err)
				}
			}
			h.Prune(t.Context(), h.MaxBytes)
			if !isWhole(t, h, first) {
				t.Error("the home went with the rest")
			}
			entries, err := os.ReadDir(h.Dir)
			if left := slices.DeleteFunc(entries, func(e os.DirEntry) bool {
				return !strings.Contains(e.Name(), ".") || strings.HasSuffix(e.Name(), ".lock")
			}); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// isWhole reports whether a home is used, and checks that it is complete.
func isWhole(t *testing.T, h *Store, commit string) bool {
	t.Helper()
	w := h.Use(t.Context(), commit, "", false)
	if w == nil {
		return false
	}
	defer w.Done()
	if names, ok, err := readMade(w.dir); !ok || err != nil || !slices.Equal(names, []string{"deps", "out"}) {
		t.Errorf("files of the worktree: %q, %v, %v", names, ok, err)
	}
	for _, file := range madeBySetup() {
		if text, err := os.ReadFile(filepath.Join(w.dir, treeFolder, file)); err != nil || string(text) != file {
			t.Errorf("%s is %q, %v", file, text, err)
		}
	}
	return true
}
