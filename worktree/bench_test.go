package worktree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkIssue measures the git work of one issue against the minimum of bare git commands. Both make the same commit,
// which counts in both.
func BenchmarkIssue(b *testing.B) {
	f := newFixtureB(b)
	ctx := context.Background()
	r, err := Open(ctx, f, Options{StateDir: filepath.Join(realDir(b), "state")})
	if err != nil {
		b.Fatal(err)
	}
	base, err := r.Base(ctx, "main")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("ralph", func(b *testing.B) {
		for b.Loop() {
			key := "k" + benchNumber(b)
			claim, err := r.Claim(ctx, key, Holder{Owner: "o", Run: key}, time.Minute)
			must(b, err)
			tree, err := r.Add(ctx, Spec{Run: key, Key: key, Branch: "ralph/" + key, Base: base})
			must(b, err)
			benchCommit(b, tree.Dir())
			got, err := tree.Import(ctx, boxed(tree))
			must(b, err)
			if got.New != 1 {
				b.Fatalf("%+v", got)
			}
			must(b, tree.Remove(ctx))
			must(b, claim.Release(ctx))
		}
	})
	b.Run("private", func(b *testing.B) {
		for b.Loop() {
			key := "p" + benchNumber(b)
			claim, err := r.Claim(ctx, key, Holder{Owner: "o", Run: key}, time.Minute)
			must(b, err)
			tree, err := r.Add(ctx, Spec{Run: key, Key: key, Branch: "ralph/" + key, Base: base, Private: true})
			must(b, err)
			p, err := tree.Sandbox(ctx)
			must(b, err)
			run(b, tree.Dir(), "--git-dir="+p.GitDir, "--work-tree="+tree.Dir(), "commit", "-q", "--allow-empty", "-m", "work")
			got, err := tree.Import(ctx, boxed(tree))
			must(b, err)
			if got.New != 1 {
				b.Fatalf("%+v", got)
			}
			must(b, tree.Remove(ctx))
			must(b, claim.Release(ctx))
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			key := "f" + benchNumber(b)
			dir := filepath.Join(realDir(b), key)
			run(b, f, "worktree", "add", "-q", "-b", "floor/"+key, dir, base.Commit)
			benchCommit(b, dir)
			run(b, dir, "rev-list", base.Commit+"..HEAD")
			run(b, f, "worktree", "remove", dir)
		}
	})
}

func newFixtureB(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(realDir(b), "project")
	run(b, "", "init", "-q", "-b", "main", dir)
	for i := range 100 {
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), []byte("x\n"), 0o600))
	}
	run(b, dir, "add", ".")
	run(b, dir, "commit", "-q", "-m", "first")
	return dir
}

// benchNumber returns a new text in every round of the benchmark.
func benchNumber(b *testing.B) string {
	b.Helper()
	return filepath.Base(realDir(b)) + filepath.Base(filepath.Dir(realDir(b)))
}

func benchCommit(b *testing.B, dir string) {
	b.Helper()
	run(b, dir, "commit", "-q", "--allow-empty", "-m", "work")
}

func run(b *testing.B, dir string, args ...string) {
	b.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
