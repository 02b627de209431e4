package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPipesInGitFiles puts pipes in the place of files that git reads: git would block forever.
func TestPipesInGitFiles(t *testing.T) {
	t.Parallel()
	tests := map[string]func(f *fixture, tree *Tree) string{
		"HEAD":          func(_ *fixture, tree *Tree) string { return filepath.Join(tree.rec.GitDir, "HEAD") },
		"index":         func(_ *fixture, tree *Tree) string { return filepath.Join(tree.rec.GitDir, "index") },
		"settings":      func(_ *fixture, tree *Tree) string { return filepath.Join(tree.rec.GitDir, "config.worktree") },
		"log":           func(_ *fixture, tree *Tree) string { return filepath.Join(tree.rec.GitDir, "logs", "HEAD") },
		"shared config": func(f *fixture, _ *Tree) string { return filepath.Join(f.dir, ".git", "config") },
		"shared HEAD":   func(f *fixture, _ *Tree) string { return filepath.Join(f.dir, ".git", "HEAD") },
		"excludes":      func(f *fixture, _ *Tree) string { return filepath.Join(f.dir, ".git", "info", "exclude") },
		"branch":        func(f *fixture, _ *Tree) string { return filepath.Join(f.dir, ".git", "refs", "heads", "ralph", "k") },
	}
	for name, path := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.git("config", "extensions.worktreeConfig", "true")
			tree := f.add("k", "r1")
			tip := f.commit(tree.Dir(), "done", "x", "work")
			f.write(tree.Dir(), "undone", "y")
			pipe := path(f, tree)
			content, err := os.ReadFile(pipe)
			if err == nil {
				err = os.Remove(pipe)
			}
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			trees, err := f.repo.Trees(t.Context()) // as another process reads them
			if err != nil {
				t.Fatal(err)
			}
			if _, err := trees[0].Import(t.Context(), nil); err == nil || !strings.Contains(err.Error(), pipe+" is not a regular file") {
				t.Errorf("error %v", err)
			}
			if err := os.Remove(pipe); err != nil {
				t.Fatal(err)
			}
			if len(content) > 0 {
				f.write(filepath.Dir(pipe), filepath.Base(pipe), string(content))
			}
			if got := f.imported(trees[0]); got.Tip != tip || got.WIP == "" {
				t.Errorf("imported %+v", got)
			}
		})
	}
}

// A pipe among the files that git opens makes git status block; all other files are saved.
func TestPipeInFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.repo.statusTime = 1 // one nanosecond: git status would not end after any time
	tree := f.add("k", "r1")
	tip := f.commit(tree.Dir(), "done", "x", "work")
	f.write(tree.Dir(), "d/undone", "y")
	if err := unix.Mkfifo(filepath.Join(tree.Dir(), "d", ".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := f.imported(tree)
	if got.Tip != tip || got.WIP == "" || f.show(got.WIP, "d/undone") != "y" {
		t.Errorf("imported %+v", got)
	}
}

// TestPipeInInnerRepository puts a pipe in the place of HEAD in a nested repository.
func TestPipeInInnerRepository(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{false, true} {
		f := newFixture(t)
		f.repo.statusTime = time.Second
		spec := f.spec("k", "r1")
		spec.Private = private
		tree := f.addSpec(spec)
		in := inside{f, tree, f.use(tree)}
		if private {
			in.sh(`echo x >done; git add done; git commit -qm work`)
		} else {
			f.commit(tree.Dir(), "done", "x", "work")
		}
		f.sh(tree.Dir(), "git", "init", "-q", "n")
		f.commit(filepath.Join(tree.Dir(), "n"), "file", "y", "inner")
		head := filepath.Join(tree.Dir(), "n", ".git", "HEAD")
		if err := os.Remove(head); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(head, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := tree.Import(ctx, boxed(tree))
		if err != nil || f.show(got.Tip, "done") != "x" && f.show(got.Tip, "done") != "x\n" {
			t.Errorf("private %v: imported %+v, %v", private, got, err)
		}
		if private && f.show(got.WIP, "n/file") != "y" {
			t.Errorf("the inner files are lost: %+v", got)
		}
	}
}
