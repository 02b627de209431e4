package worktree

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/claim"
	"github.com/ralph-pool/ralph/worktree/internal/incoming"
	"github.com/ralph-pool/ralph/worktree/internal/traces"
	"github.com/ralph-pool/ralph/worktree/leftover"
	"github.com/ralph-pool/ralph/worktree/record"
)

// leftovers lists the leftovers, each as its kind and place.
func (f *fixture) leftovers(thorough bool) (list []string) {
	f.Helper()
	all, err := f.repo.Leftovers(f.Context(), thorough)
	if err != nil {
		f.Fatal(err)
	}
	for _, l := range all {
		list = append(list, string(l.Kind)+" "+l.Where)
	}
	return list
}

// age makes a file or folder look older than any lease.
func (f *fixture) age(path string) {
	f.Helper()
	then := time.Now().Add(-2 * tempAge)
	if err := os.Chtimes(path, then, then); err != nil {
		f.Fatal(err)
	}
}

const tempAge = 24 * time.Hour

// TestLeftovers lists all kinds of leftovers. Each is found, as one line, and is gone after its removal. Then git works for
// the user, and the key can be worked.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	const nothing = "1111111111111111111111111111111111111111"
	for name, c := range map[string]struct {
		leave func(f *fixture) (kind leftover.Kind, where string)
		safe  bool
		kept  string // a file or ref that keeps what may be needed
	}{
		"stale lock": {safe: true, leave: func(f *fixture) (leftover.Kind, string) {
			f.write(f.dir, ".git/refs/ralph/work/k.lock", "")
			lock := filepath.Join(f.dir, ".git/refs/ralph/work/k.lock")
			f.age(lock)
			return leftover.Lock, lock
		}},
		"killed merge": {safe: true, leave: func(f *fixture) (leftover.Kind, string) {
			head := f.git("rev-parse", "HEAD")
			next := f.git("commit-tree", "-p", head, "-m", "next", head+"^{tree}")
			f.write(f.dir, ".git/index.lock", fmt.Sprintf("ralph moves refs/heads/main from %s to %s\n", head, next))
			return leftover.Hold, filepath.Join(f.dir, ".git/index.lock")
		}},
		"unreadable record": {safe: true, kept: "kept/*/files/draft", leave: func(f *fixture) (leftover.Kind, string) {
			tree := f.add("k", "r1")
			f.write(tree.Dir(), "draft", "y")
			f.write(filepath.Dir(tree.Dir()), filepath.Base(tree.Dir())+record.Suffix, "{")
			return leftover.Record, tree.Dir() + record.Suffix
		}},
		"record is lost": {safe: true, kept: "kept/*/files/draft", leave: func(f *fixture) (leftover.Kind, string) {
			tree := f.add("k", "r1")
			f.write(tree.Dir(), "draft", "y")
			f.sh("", "rm", tree.Dir()+record.Suffix)
			return leftover.Stray, tree.Dir()
		}},
		"record of a private tree is lost": {safe: true, kept: "kept/*/repository/description", leave: func(f *fixture) (leftover.Kind, string) {
			in := f.private("k", "r1")
			name := f.state + "/worktrees/" + in.tree.name
			f.sh("", "rm", name+record.Suffix)
			return leftover.Stray, name
		}},
		"record and files of a private tree are lost": {safe: true, kept: "kept/*/given", leave: func(f *fixture) (leftover.Kind, string) {
			in := f.private("k", "r1")
			f.sh("", "rm", "-r", in.tree.privateDir(), f.state+"/worktrees/"+in.tree.name, f.state+"/worktrees/"+in.tree.name+record.Suffix)
			return leftover.Stray, in.tree.givenDir()
		}},
		"folder is gone": {safe: true, leave: func(f *fixture) (leftover.Kind, string) {
			tree := f.add("k", "r1")
			f.sh("", "rm", "-rf", tree.Dir(), tree.Dir()+record.Suffix)
			return leftover.Checkout, tree.record().GitDir
		}},
		"folder is gone, with a commit": {safe: true, kept: "refs/ralph/old/k/", leave: func(f *fixture) (leftover.Kind, string) {
			tree := f.add("k", "r1")
			f.sh(tree.Dir(), "git", "switch", "-q", "--detach")
			f.commit(tree.Dir(), "x", "x", "work")
			f.sh("", "rm", "-rf", tree.Dir(), tree.Dir()+record.Suffix)
			return leftover.Checkout, tree.record().GitDir
		}},
		"in another state folder": {leave: func(f *fixture) (leftover.Kind, string) {
			other := &fixture{T: f.T, dir: f.dir, state: filepath.Join(realDir(f), "state")}
			other.open(Options{})
			tree := other.add("k", "r1")
			f.age(tree.record().GitDir)
			return leftover.OtherState, tree.Dir()
		}},
		"half made": {leave: func(f *fixture) (leftover.Kind, string) {
			f.write(f.dir, ".git/worktrees/k-1/locked", "ralph run r1\n")
			f.write(f.dir, ".git/worktrees/k-1/HEAD", strings.Repeat("0", 40)+"\n")
			entry := filepath.Join(f.dir, ".git/worktrees/k-1")
			f.age(entry)
			return leftover.Checkout, entry
		}},
		"temporary files": {safe: true, leave: func(f *fixture) (leftover.Kind, string) {
			dead := f.repo.self
			dead.PID = 1 << 30
			dir := traces.TempDir(f.state, dead)
			f.write(dir, "record-1", "x")
			return leftover.Temp, dir
		}},
		"a killed fetch": {safe: true, leave: func(f *fixture) (leftover.Kind, string) {
			used, remove, err := incoming.Folder(f.Context(), filepath.Join(f.dir, ".git/objects"))
			if err != nil {
				f.Fatal(err)
			}
			f.Cleanup(remove)
			left := used + "-killed"
			f.write(left, "pack/tmp_pack_1", "x") // not locked
			f.age(used)
			f.age(left)
			return leftover.Temp, left
		}},
		"temporary files of another machine": {safe: true, leave: func(f *fixture) (leftover.Kind, string) {
			other := f.repo.self
			other.Host = "other"
			dir := traces.TempDir(f.state, other)
			f.write(dir, "record-1", "x")
			f.age(filepath.Join(dir, "record-1"))
			f.age(dir)
			return leftover.Temp, dir
		}},
		"ref without its commit": {leave: func(f *fixture) (leftover.Kind, string) {
			f.write(f.dir, ".git/refs/ralph/work/k", nothing+"\n")
			return leftover.Ref, "refs/ralph/work/k"
		}},
		"ref without a name": {safe: true, leave: func(f *fixture) (leftover.Kind, string) {
			f.write(f.dir, ".git/refs/heads/ralph/k", "")
			ref := filepath.Join(f.dir, ".git/refs/heads/ralph/k")
			f.age(ref)
			return leftover.Ref, ref
		}},
		"ref without its files": {leave: func(f *fixture) (leftover.Kind, string) {
			f.git("switch", "-q", "-c", "ralph/k")
			f.commit(f.dir, "only-here", "x", "work")
			blob := f.git("rev-parse", "HEAD:only-here")
			f.git("switch", "-q", "main")
			f.sh("", "rm", "-f", filepath.Join(f.dir, ".git/objects", blob[:2], blob[2:]))
			return leftover.Ref, "refs/heads/ralph/k"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.add("other", "r0")
			kind, where := c.leave(f)
			if got, want := f.leftovers(true), []string{string(kind) + " " + where}; !slices.Equal(got, want) {
				t.Fatalf("found %q, want %q", got, want)
			}
			if got := f.leftovers(false); len(got) != 1 && c.safe {
				t.Errorf("a quick look finds %q", got)
			}
			all, err := f.repo.Leftovers(t.Context(), true)
			if err != nil || all[0].Safe != c.safe || strings.Contains(fmt.Sprint(all[0].Where, all[0].Detail), "\n") {
				t.Fatalf("%+v, %v", all, err)
			}
			for range 2 { // the second time it is gone
				if _, err := all[0].Remove(t.Context()); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrMoved) {
					t.Fatal(err)
				}
			}
			if got := f.leftovers(true); len(got) != 0 {
				t.Errorf("still there: %q", got)
			}
			f.git("log", "--all")
			f.git("rev-list", "--objects", "--all", "--quiet")
			if strings.HasPrefix(c.kept, "refs/") && f.git("for-each-ref", c.kept) == "" {
				t.Errorf("nothing is kept under %s", c.kept)
			} else if kept, _ := filepath.Glob(filepath.Join(f.state, c.kept)); !strings.HasPrefix(c.kept, "refs/") && len(kept) != 1 {
				t.Errorf("kept: %q", kept)
			}
			next := f.add("k", "r2")
			f.imported(next)
			f.remove(next)
		})
	}
}

// A sweep, which only looks quickly, does not wait for the deletion of a removed worktree, and so does not delete it
// itself.
func TestRemovedWorktreeStillOnDisk(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dir := filepath.Join(f.state, "trash", "k-1-X")
	f.write(dir, "a/b", "x")
	if got, want := f.leftovers(true), []string{string(leftover.Trash) + " " + dir}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := f.leftovers(false); len(got) > 0 {
		t.Errorf("a quick look finds %q", got)
	}
	f.clean()
}

// Nothing of a live run is a leftover.
func TestNoLeftovers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	linked := f.add("k", "r1")
	f.private("p", "r2")
	f.write(f.dir, ".git/refs/ralph/work/young.lock", "")
	f.write(f.repo.tempDir, "record-1", "x")
	f.sh("", "rm", "-rf", linked.Dir())                             // the tree's record leads to the rest
	f.write(f.dir, ".git/worktrees/young/locked", "ralph run r3\n") // git is just making it
	other := &fixture{T: t, dir: f.dir, state: filepath.Join(realDir(t), "state")}
	other.open(Options{})
	other.add("fresh", "r4")
	f.age(other.add("runs", "r5").record().GitDir)
	alive := exec.Command("sleep", "1000")
	alive.Env = append(os.Environ(), "RALPH_MARK=r5")
	if err := alive.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(alive.Process.Kill(), alive.Wait()) })
	f.git("worktree", "add", "-q", filepath.Join(f.dir, "..", "users"))
	f.git("worktree", "lock", filepath.Join(f.dir, "..", "users"))
	f.sh("", "rm", "-rf", filepath.Join(f.dir, "..", "users"))
	if got := f.leftovers(true); len(got) != 0 {
		t.Errorf("found %q", got)
	}
}

// Opening the repository removes the empty folder of a process that has ended, and no other.
func TestEmptyFoldersOfEndedProcesses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ended, used, other := f.repo.self, f.repo.self, f.repo.self
	ended.PID, used.PID, other.Host = 1<<30, 1<<30+1, "other"
	for p, files := range map[*claim.Process]string{&ended: "", &used: "/layer-1", &other: ""} {
		if err := os.MkdirAll(traces.TempDir(f.state, *p)+files, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), f.dir, f.repo.opts); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[*claim.Process]bool{&ended: false, &used: true, &other: true, &f.repo.self: true} {
		if _, err := os.Stat(traces.TempDir(f.state, *p)); err == nil != want {
			t.Errorf("folder of process %d on %s: %v", p.PID, p.Host, err)
		}
	}
}

// Only a sweep removes empty folders of another machine's ended processes: whoever just looks for leftovers changes nothing.
func TestLookingRemovesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.repo.self
	other.Host = "other"
	dir := traces.TempDir(f.state, other)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f.age(dir)
	exists := func() bool { _, err := os.Stat(dir); return err == nil }
	if got := append(f.leftovers(true), fmt.Sprint(f.repo.TempLeftovers())); len(got) != 1 || got[0] != "[]" || !exists() {
		t.Errorf("found %q; the folder exists: %v", got, exists())
	}
	if got := f.leftovers(false); len(got) != 0 || exists() {
		t.Errorf("a sweep found %q; the folder exists: %v", got, exists())
	}
}

// Recently used files of a process on another machine stay, and so does this process's own folder, which others judge by
// its age.
func TestTemporaryFilesInUse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.repo.self
	other.Host = "other"
	dir := traces.TempDir(f.state, other)
	f.write(dir, "layer-1/file", "x")
	f.age(dir)
	f.age(filepath.Join(f.state, "tmp", "other"))
	f.age(f.repo.tempDir)
	if left := f.leftovers(false); len(left) > 0 {
		t.Errorf("found %v", left)
	}
	info, err := os.Stat(f.repo.tempDir)
	if err != nil || time.Since(info.ModTime()) > tempAge {
		t.Errorf("this process's folder: %v, %v", info, err)
	}
}

// Locks of a git that was killed with its agent do not block the next agent on the host. Locks of a git that may be alive
// stay, and so do those of the checkout.
func TestLocksOfAKilledGitOnTheHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := "r" + rand.Text()
	tree := f.add("42", run)
	gitDir := strings.TrimSpace(f.sh(tree.Dir(), "git", "rev-parse", "--absolute-git-dir"))
	locks := []string{filepath.Join(gitDir, "index.lock"), filepath.Join(gitDir, "HEAD.lock")}
	foreign := filepath.Join(f.dir, ".git", "index.lock")
	for _, path := range append(locks, foreign) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	present := func(paths ...string) (n int) {
		for _, path := range paths {
			if _, err := os.Lstat(path); err == nil {
				n++
			}
		}
		return n
	}
	in, out := io.Pipe()
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := proc.Run(t.Context(), proc.Spec{Argv: []string{"sh", "-c", "echo; read x"}, Dir: tree.Dir(), Env: os.Environ(), Mark: run, Stdin: in, Stdout: writer(func() { close(began) })})
		ended <- err
	}()
	<-began
	f.imported(tree)
	if n := present(locks...); n != 2 {
		t.Errorf("%d locks are left beside a process of the run", n)
	}
	_, _ = io.WriteString(out, "\n")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	f.imported(tree)
	if n := present(locks...); n != 2 {
		t.Errorf("%d locks are left of a person's git, after the run's last import", n)
	}
	f.use(tree)
	f.imported(tree)
	if n := present(locks...); n != 0 {
		t.Errorf("%d locks are left", n)
	}
	f.commit(tree.Dir(), "a", "a\n", "of the next agent")
	if got := f.imported(tree); len(got.Commits) != 1 {
		t.Errorf("%+v", got)
	}
	if present(foreign) != 1 {
		t.Error("the lock of the checkout is gone")
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	f.remove(tree)
}

// writer calls itself at every write.
type writer func()

func (w writer) Write(b []byte) (int, error) {
	w()
	return len(b), nil
}
