package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCopyIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	spec := f.spec("k", "r")
	spec.Private = true
	tree, err := f.repo.Add(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	outside := realDir(t)
	f.write(outside, "secret", "s")
	f.write(f.dir, "ignored/deep/file", "content")
	f.write(f.dir, "ignored/run", "#!/bin/sh")
	f.write(f.dir, ".env", "A=1")
	f.sh(f.dir, "chmod", "755", "ignored/run")
	f.sh(f.dir, "ln", "-s", "deep/file", "ignored/link")
	f.sh(f.dir, "ln", "-s", outside, "out")
	f.sh(f.dir, "mkfifo", "pipe")
	// The worktree may be hostile: a link in the way is replaced and not followed.
	f.sh(tree.Dir(), "ln", "-s", filepath.Join(outside, "secret"), ".env")
	if err := tree.CopyIn(ctx, []string{"ignored", ".env"}); err != nil {
		t.Fatal(err)
	}
	if f.read(tree.Dir(), "ignored/link") != "content" || f.read(tree.Dir(), ".env") != "A=1" || f.read(outside, "secret") != "s" {
		t.Error("not copied as it was")
	}
	if info, err := os.Lstat(filepath.Join(tree.Dir(), "ignored/run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, path := range []string{
		"missing", "../x", "/etc/passwd", "out", "out/secret", "pipe", ".git", ".git/config", ".GIT/config", ".", "",
	} {
		if err := tree.CopyIn(ctx, []string{path}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("copy of %q: %v", path, err)
		}
	}
	f.sh(tree.Dir(), "ln", "-s", outside, "escape")
	f.write(f.dir, "escape/secret", "changed")
	_ = tree.CopyIn(ctx, []string{"escape/secret"})
	if f.read(outside, "secret") != "s" {
		t.Error("a link in the worktree was followed")
	}
	// A private file is not copied under any name.
	f.write(f.dir, ".keys/mine", "KEY=1")
	f.write(f.dir, ".keys/other", "x")
	f.sh(f.dir, "ln", "-s", ".keys", "alias")
	f.sh(f.dir, "ln", ".keys/mine", "second")
	f.repo.opts.Private = []string{".keys/mine", ".keys/none"}
	for _, path := range []string{".keys/mine", "alias/mine", "second"} {
		if err := tree.CopyIn(ctx, []string{path}); err == nil {
			t.Errorf("%s was copied", path)
		}
	}
	if err := tree.CopyIn(ctx, []string{".keys"}); err != nil || f.read(tree.Dir(), ".keys/other") != "x" {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(tree.Dir(), ".keys/mine")); err == nil {
		t.Error("a private file was copied with its folder")
	}
	f.use(tree)
	if err := tree.CopyIn(ctx, []string{".env"}); err == nil {
		t.Error("copied into a folder that an agent can write")
	}
}
