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

// TestRefFilesAsGit: whatever shape the refs are in, the files and git give one answer, or the files give none.
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
		"packed":         {func(f *repo) { f.git("pack-refs", "--all") }, []string{"refs/heads/main"}, false},
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
		}, []string{"refs/heads/a/"}, false},
		"symbolic below": {func(f *repo) { f.git("symbolic-ref", "refs/heads/a/alias", "refs/heads/main") }, []string{"refs/heads/a/"}, false},
		"torn below":     {func(f *repo) { f.git("branch", "a/b"); write(f.T, filepath.Join(f.dir, ".git/refs/heads/a/torn"), "") }, []string{"refs/heads/a/"}, false},
		"packed below": {func(f *repo) {
			f.git("branch", "a/b")
			f.git("pack-refs", "--all")
			if err := os.RemoveAll(filepath.Join(f.dir, ".git", "refs", "heads", "a")); err != nil {
				f.Fatal(err)
			}
		}, []string{"refs/heads/a/"}, false},
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
			if !f.files().plain() {
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
			maps.DeleteFunc(want, func(ref, _ string) bool { // git also lists what is below a full name
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

func TestHeadBranch(t *testing.T) {
	t.Parallel()
	f := newRepo(t)
	if ref, ok := f.files().head(filepath.Join(f.dir, ".git")); f.files().plain() && (!ok || ref != "refs/heads/main") {
		t.Fatal(ref, ok)
	}
	f.git("switch", "-q", "--detach")
	if ref, ok := f.files().head(filepath.Join(f.dir, ".git")); ok {
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
