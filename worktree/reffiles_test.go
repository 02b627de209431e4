package worktree

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRefFilesAsGit: whatever shape the refs are in, the files and git give one answer, or the files give none.
func TestRefFilesAsGit(t *testing.T) {
	t.Parallel()
	plain := func(*fixture) {}
	for name, c := range map[string]struct {
		shape func(*fixture)
		ask   []string
		ok    bool
	}{
		"loose":          {plain, []string{"refs/heads/main"}, true},
		"none":           {plain, []string{"refs/heads/other", "refs/ralph/old/k/"}, true},
		"below a branch": {plain, []string{"refs/heads/main/more"}, true},
		"packed":         {func(f *fixture) { f.git("pack-refs", "--all") }, []string{"refs/heads/main"}, false},
		"others packed": {func(f *fixture) {
			f.git("branch", "mainly")
			f.git("pack-refs", "--all")
		}, []string{"refs/heads/main2", "refs/heads/ainly", "refs/heads/mai"}, true},
		"loose over packed": {func(f *fixture) {
			f.git("pack-refs", "--all")
			f.git("commit", "-q", "--allow-empty", "-m", "more")
		}, []string{"refs/heads/main"}, true},
		"symbolic": {func(f *fixture) { f.git("symbolic-ref", "refs/heads/alias", "refs/heads/main") },
			[]string{"refs/heads/alias"}, false},
		"folder": {func(f *fixture) { f.git("branch", "a/b") }, []string{"refs/heads/a"}, false},
		"below":  {func(f *fixture) { f.git("branch", "a/b") }, []string{"refs/heads/a/"}, false},
		"packed below": {func(f *fixture) {
			f.git("branch", "a/b")
			f.git("pack-refs", "--all")
			if err := os.RemoveAll(filepath.Join(f.dir, ".git", "refs", "heads", "a")); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/a/"}, false},
		"half written": {func(f *fixture) {
			f.git("branch", "torn")
			if err := os.Truncate(filepath.Join(f.dir, ".git", "refs", "heads", "torn"), 20); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/torn"}, false},
		"a link out": {func(f *fixture) {
			if err := os.Symlink("/dev/zero", filepath.Join(f.dir, ".git", "refs", "heads", "link")); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/link"}, false},
		"no name of a ref": {plain, []string{"refs/heads/../../config"}, false},
		"another format": {func(f *fixture) {
			if err := os.Mkdir(filepath.Join(f.dir, ".git", "reftable"), 0o755); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/main"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.shape(f)
			if f.repo.refs.folds {
				c.ok = false
			}
			got, ok := f.repo.refs.read(c.ask)
			if ok != c.ok {
				t.Fatalf("answered: %t, expected %t (%v)", ok, c.ok, got)
			}
			if !ok {
				return
			}
			if want, err := f.repo.git.readRefs(context.Background(), c.ask...); err != nil || !maps.Equal(got, want) {
				t.Fatalf("%v, git says %v (%v)", got, want, err)
			}
		})
	}
}

// TestAllRefsAsGit: every commit that git lists is there, or git is left to list them.
func TestAllRefsAsGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := f.withRemote()
	f.commit(f.dir, "b.txt", "b\n", "second")
	f.git("tag", "-a", "-m", "x", "v1")
	f.git("branch", "a/b")
	f.git("pack-refs", "--all")
	f.commit(f.dir, "c.txt", "c\n", "third")
	f.git("branch", "new")
	f.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	f.git("update-ref", "refs/strange/x", "HEAD~2")
	f.write(f.dir, ".git/refs/heads/new.lock", "")
	commits := func(refs map[string]string) []string {
		return slices.Compact(slices.Sorted(maps.Values(refs)))
	}
	got, ok := f.repo.refs.all()
	want, err := f.repo.git.readRefs(t.Context())
	if err != nil || !ok || !slices.Equal(commits(got), commits(want)) {
		t.Errorf("%t %v, git says %v (%v)", ok, got, want, err)
	}
	f.write(f.dir, ".git/refs/heads/torn", strings.Repeat("1", 20))
	if got, ok := f.repo.refs.all(); ok {
		t.Errorf("torn: %v", got)
	}
	if err := os.Mkdir(filepath.Join(bare, "reftable"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, ok := newRefFiles(bare).all(); ok {
		t.Errorf("another format: %v", got)
	}
}

func TestHeadBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if ref, ok := f.repo.refs.headBranch(f.repo.gitDir); !f.repo.refs.folds && (!ok || ref != "refs/heads/main") {
		t.Fatal(ref, ok)
	}
	f.git("switch", "-q", "--detach")
	if ref, ok := f.repo.refs.headBranch(f.repo.gitDir); ok {
		t.Fatal(ref)
	}
}

// TestClose: one call takes everything back and removes the worktree; what cannot be taken back stays.
func TestClose(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFixture(t)
	base, err := f.repo.Base(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := f.repo.Add(ctx, Spec{Run: "1", Key: "k", Branch: "ralph/k", Base: base})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := tree.Earlier(ctx); err != nil || h.Tip != base.Commit || len(h.Commits) != 0 {
		t.Fatal(h, err)
	}
	f.sh(tree.Dir(), "git", "commit", "-q", "--allow-empty", "-m", "work")
	f.write(tree.Dir(), "left.txt", "not committed\n")
	if _, err := tree.HandBack(ctx); err != nil {
		t.Fatal(err)
	}
	f.git("update-ref", "-d", "refs/ralph/work/k")
	if _, err := tree.Close(ctx); err == nil {
		t.Fatal("the work is on no ref, and the worktree was removed")
	}
	h, err := tree.Close(ctx)
	if err != nil || len(h.Commits) != 1 || h.WIP == "" {
		t.Fatal(h, err)
	}
	if _, err := os.Lstat(tree.Dir()); !os.IsNotExist(err) {
		t.Fatal("still there", err)
	}
	if got := f.git("show", "refs/ralph/wip/k:left.txt"); got != "not committed" {
		t.Fatal(got)
	}
}
