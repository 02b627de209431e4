package git

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// For refs of any form, the files give the same answer as git, or none.
func TestRefFilesAsGit(t *testing.T) {
	t.Parallel()
	plain := func(*repo) {}
	for name, c := range map[string]struct {
		shape func(*repo)
		ask   []string
		ok    bool
	}{
		"loose":          {plain, []string{"refs/heads/main"}, true},
		"none":           {plain, []string{"refs/heads/other", "refs/ralph/old/k/"}, true},
		"below a branch": {plain, []string{"refs/heads/main/more"}, true},
		"packed": {func(f *repo) {
			f.git("tag", "-a", "-m", "one", "v1")
			f.git("branch", "other")
			f.git("pack-refs", "--all")
		}, []string{"refs/heads/main", "refs/heads/none", "refs/tags/"}, true},
		"packed and not read": {func(f *repo) {
			f.git("pack-refs", "--all")
			write(f.T, filepath.Join(f.dir, ".git/packed-refs"), "half a line")
		}, []string{"refs/heads/main"}, false},
		"others packed": {func(f *repo) {
			f.git("branch", "mainly")
			f.git("pack-refs", "--all")
		}, []string{"refs/heads/main2", "refs/heads/ainly", "refs/heads/mai"}, true},
		"loose over packed": {func(f *repo) {
			f.git("pack-refs", "--all")
			f.git("commit", "-q", "--allow-empty", "-m", "more")
		}, []string{"refs/heads/main"}, true},
		"symbolic": {func(f *repo) { f.git("symbolic-ref", "refs/heads/alias", "refs/heads/main") },
			[]string{"refs/heads/alias"}, false},
		"folder": {func(f *repo) { f.git("branch", "a/b") }, []string{"refs/heads/a"}, true},
		"below": {func(f *repo) {
			f.git("branch", "a/b")
			f.git("branch", "a/c/d")
			f.git("branch", "other")
			f.git("pack-refs")
			write(f.T, filepath.Join(f.dir, ".git/refs/heads/a/.hidden"), "x")
			write(f.T, filepath.Join(f.dir, ".git/refs/heads/a/b.lock"), "x")
		}, []string{"refs/heads/a/", "refs/heads/main"}, true},
		"half packed below": {func(f *repo) {
			f.git("branch", "a/b")
			f.git("pack-refs", "--all")
			f.git("branch", "a/c")
		}, []string{"refs/heads/a/"}, true},
		"symbolic below":  {func(f *repo) { f.git("symbolic-ref", "refs/heads/a/alias", "refs/heads/main") }, []string{"refs/heads/a/"}, false},
		"symbolic inside": {func(f *repo) { f.git("symbolic-ref", "refs/heads/a/alias", "refs/heads/main") }, []string{"refs/heads/"}, true},
		"torn below":      {func(f *repo) { f.git("branch", "a/b"); write(f.T, filepath.Join(f.dir, ".git/refs/heads/a/torn"), "") }, []string{"refs/heads/a/"}, false},
		"packed below": {func(f *repo) {
			f.git("branch", "a/b")
			f.git("pack-refs", "--all")
			if err := os.RemoveAll(filepath.Join(f.dir, ".git", "refs", "heads", "a")); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/a/"}, true},
		"half written": {func(f *repo) {
			f.git("branch", "torn")
			if err := os.Truncate(filepath.Join(f.dir, ".git", "refs", "heads", "torn"), 20); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/torn"}, false},
		"a link out": {func(f *repo) {
			if err := os.Symlink("/dev/zero", filepath.Join(f.dir, ".git", "refs", "heads", "link")); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/link"}, false},
		"no name of a ref": {plain, []string{"refs/heads/../../config"}, false},
		"another format": {func(f *repo) {
			if err := os.Mkdir(filepath.Join(f.dir, ".git", "reftable"), 0o755); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/main"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRepo(t)
			c.shape(f)
			if !f.files().hasPlainFiles() {
				c.ok = false
			}
			got, ok := f.files().read(c.ask)
			if ok != c.ok {
				t.Fatalf("answered: %t, expected %t (%v)", ok, c.ok, got)
			}
			if !ok {
				return
			}
			want, err := f.listRefs(context.Background(), c.ask...)
			maps.DeleteFunc(want, func(ref, _ string) bool { // git also lists refs below a full name
				return !slices.ContainsFunc(c.ask, func(name string) bool {
					return ref == name || strings.HasSuffix(name, "/") && strings.HasPrefix(ref, name)
				})
			})
			if err != nil || !maps.Equal(got, want) {
				t.Fatalf("%v, git says %v (%v)", got, want, err)
			}
		})
	}
}

// Reading all refs gives the same answer as git.
func TestRefsBut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shape func(*repo)
		ok    bool
	}{
		"plain": {func(*repo) {}, true},
		"many": {func(f *repo) {
			f.git("tag", "-a", "-m", "one", "v1")
			f.git("update-ref", "refs/stash", "HEAD")
			f.git("update-ref", "refs/remotes/origin/main", "HEAD")
			f.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
			f.git("pack-refs", "--all")
			f.git("commit", "-q", "--allow-empty", "-m", "more")
			f.git("branch", "a/b")
			f.git("update-ref", "refs/ours/a/b", "HEAD")
		}, true},
		"all packed": {func(f *repo) {
			f.git("update-ref", "refs/ours/a", "HEAD")
			f.git("update-ref", "refs/notes/a", "HEAD")
			f.git("pack-refs", "--all")
		}, true},
		"link to a link": {func(f *repo) {
			f.git("symbolic-ref", "refs/heads/one", "refs/heads/main")
			f.git("symbolic-ref", "refs/heads/two", "refs/heads/one")
			f.git("symbolic-ref", "refs/heads/three", "refs/ours/a")
		}, false},
		"a checkout's own": {func(f *repo) { f.git("update-ref", "refs/bisect/bad", "HEAD") }, false},
		"torn":             {func(f *repo) { write(f.T, filepath.Join(f.dir, ".git/refs/heads/torn"), "") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRepo(t)
			c.shape(f)
			if _, ok := f.files().readExcept("refs/ours/"); ok != (c.ok && f.files().hasPlainFiles()) {
				t.Errorf("answered: %t", ok)
			}
			got, err := f.RefsExcept(t.Context(), "refs/ours/")
			want, errGit := f.listRefs(t.Context())
			maps.DeleteFunc(want, func(ref, _ string) bool { return strings.HasPrefix(ref, "refs/ours/") })
			if err != nil || errGit != nil || !maps.Equal(got, want) {
				t.Errorf("%v, git says %v (%v, %v)", got, want, err, errGit)
			}
		})
	}
}

// A linked checkout has its own refs in addition to those of the repository.
func TestRefsButOfALinkedCheckout(t *testing.T) {
	t.Parallel()
	f := newRepo(t)
	linked := filepath.Join(f.dir, "..", "linked")
	f.git("worktree", "add", "-q", linked)
	f.git("-C", linked, "update-ref", "refs/worktree/own", "HEAD")
	common := filepath.Join(f.dir, ".git")
	got, err := f.Pin(filepath.Join(common, "worktrees", "linked"), common, linked).RefsExcept(t.Context(), "refs/ours/")
	if err != nil || got["refs/worktree/own"] == "" {
		t.Errorf("%v (%v)", got, err)
	}
}

func TestHeadBranch(t *testing.T) {
	t.Parallel()
	f := newRepo(t)
	if ref, ok := f.files().readHead(filepath.Join(f.dir, ".git")); f.files().hasPlainFiles() && (!ok || ref != "refs/heads/main") {
		t.Fatal(ref, ok)
	}
	f.git("switch", "-q", "--detach")
	if ref, ok := f.files().readHead(filepath.Join(f.dir, ".git")); ok {
		t.Fatal(ref)
	}
}

func TestCheckRegular(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	pipe := unix.Mkfifo(at("pipe"), 0o600)
	err := errors.Join(pipe, os.WriteFile(at("file"), nil, 0o600), os.Symlink("file", at("link")), os.Symlink("pipe", at("hidden")),
		os.Symlink(os.DevNull, at("null")), os.Symlink("/dev/zero", at("zero")), os.Symlink("nothing", at("dangling")))
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"": true, "file": true, "link": true, "null": true, "none": true, "dangling": true, "file/below": true,
		"pipe": false, "hidden": false, "zero": false,
	} {
		if err := CheckRegular(at("file"), at(name)); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := ReadLinked(at(name)); (err == nil) != (name == "file" || name == "link") {
			t.Errorf("read %s: %v", name, err)
		}
	}
}
