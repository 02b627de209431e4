package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/worktree/importer"
)

// onSmallDisk gives the fixture a state folder on its own file system; resize changes its size.
func onSmallDisk(t *testing.T, f *fixture) (resize func(mib string)) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may mount; CI is root")
	}
	f.state = filepath.Join(realDir(t), "small")
	if err := os.Mkdir(f.state, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := func(flags uintptr, mib string) {
		if err := unix.Mount("tmpfs", f.state, "tmpfs", flags, "mode=0700,size="+mib+"m"); err != nil {
			t.Fatal(err)
		}
	}
	mount(0, "32")
	t.Cleanup(func() {
		if err := unix.Unmount(f.state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	f.repo = f.open(Options{})
	return func(mib string) { mount(unix.MS_REMOUNT, mib) }
}

// On a nearly full disk, small files are saved. Files that would fill it stay where they are until there is space.
func TestImportOnAFullDisk(t *testing.T) {
	t.Parallel()
	const junk = "head -c 20000000 /dev/urandom >a-junk; truncate -s 1T b-hole; echo draft >draft; echo more >>a.txt"
	for _, private := range []bool{true, false} {
		name := map[bool]string{true: "private", false: "in place"}[private]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			resize := onSmallDisk(t, f)
			var tree *Tree
			if private {
				in := f.private("k", "r1")
				tree = in.tree
				in.sh(junk)
			} else {
				tree = f.add("k", "r1")
				f.sh(tree.Dir(), "sh", "-ec", junk)
			}
			got, err := tree.Import(t.Context(), boxed(tree))
			if err == nil || !strings.Contains(err.Error(), "too big") {
				t.Errorf("error %v", err)
			}
			if err := tree.Remove(t.Context()); !errors.Is(err, ErrUnsaved) {
				t.Errorf("removed: %v", err)
			}
			if names := f.git("diff", "--name-only", got.Tip, got.WIP); names != "a.txt\ndraft" {
				t.Errorf("saved %q", names)
			}
			if _, err := os.Lstat(filepath.Join(tree.Dir(), "a-junk")); err != nil {
				t.Errorf("the worktree has not stayed: %v", err)
			}
			if err := os.Remove(filepath.Join(tree.Dir(), "b-hole")); err != nil {
				t.Fatal(err)
			}
			resize("256")
			got = f.imported(tree)
			if names := f.git("diff", "--name-only", got.Tip, got.WIP); names != "a-junk\na.txt\ndraft" {
				t.Errorf("saved %q", names)
			}
		})
	}
}

// Commits without space stay in the private repository and are imported later.
func TestCommitsOnAFullDisk(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	resize := onSmallDisk(t, f)
	in := f.private("k", "r1")
	in.sh("head -c 12000000 /dev/urandom >big; git add big; git commit -qm big")
	got, err := in.tree.Import(context.Background(), boxed(in.tree))
	if err == nil || !strings.Contains(err.Error(), "no space is left") && !errors.Is(err, importer.ErrTooBig) || got.Tip != in.tree.Start() {
		t.Errorf("%+v, %v", got, err)
	}
	if err := in.tree.Remove(t.Context()); !errors.Is(err, ErrUnsaved) {
		t.Errorf("removed: %v", err)
	}
	resize("256")
	if got := f.imported(in.tree); len(got.Commits) != 1 {
		t.Errorf("%+v", got)
	}
}

// A commit is imported no matter how many other files lack space.
func TestCommitBesideManyFilesOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, mib := range []int{6, 9, 12, 15, 18, 21, 24, 27} {
		t.Run(fmt.Sprint(mib), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			onSmallDisk(t, f)
			in := f.private("k", "r1")
			in.sh(fmt.Sprintf("echo good >good; git add good; git commit -qm good; for i in $(seq %d); do head -c 1048576 /dev/urandom >junk-$i; done", mib))
			got, err := in.tree.Import(t.Context(), boxed(in.tree))
			if len(got.Commits) != 1 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
