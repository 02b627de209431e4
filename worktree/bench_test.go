package worktree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkIssue measures the git work of one issue, against the bare floor that nobody gets below with git's own
// commands. Both make the same commit; it counts in both.
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
			claim, err := r.Claim(ctx, key, Holder{Owner: "o", Run: key}, claimLife)
			must(b, err)
			tree, err := r.Add(ctx, Spec{Run: key, Key: key, Branch: "ralph/" + key, Base: base})
			must(b, err)
			benchCommit(b, tree.Dir())
			got, err := tree.HandBack(ctx)
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
			claim, err := r.Claim(ctx, key, Holder{Owner: "o", Run: key}, claimLife)
			must(b, err)
			tree, err := r.Add(ctx, Spec{Run: key, Key: key, Branch: "ralph/" + key, Base: base})
			must(b, err)
			p, err := tree.Private(ctx)
			must(b, err)
			run(b, tree.Dir(), "--git-dir="+p.Dir, "--work-tree="+tree.Dir(), "commit", "-q", "--allow-empty", "-m", "work")
			got, err := tree.HandBack(ctx)
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

// benchNumber is never the same twice, whatever the benchmark's rounds.
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

// BenchmarkPrivate measures what a private repository adds: making it, and a hand-back of one commit of a file.
func BenchmarkPrivate(b *testing.B) {
	ctx := context.Background()
	r, err := Open(ctx, newFixtureB(b), Options{StateDir: filepath.Join(realDir(b), "state")})
	must(b, err)
	base, err := r.Base(ctx, "main")
	must(b, err)
	tree, err := r.Add(ctx, Spec{Run: "r", Key: "k", Branch: "ralph/k", Base: base})
	must(b, err)
	work := func(b *testing.B, args ...string) {
		b.Helper()
		b.StopTimer()
		must(b, os.WriteFile(filepath.Join(tree.Dir(), "file1"), []byte(benchNumber(b)), 0o600))
		run(b, tree.Dir(), append(args, "commit", "-q", "-a", "-m", "work")...)
		b.StartTimer()
	}
	back := func(b *testing.B) {
		b.Helper()
		got, err := tree.HandBack(ctx)
		must(b, err)
		if got.New != 1 {
			b.Fatalf("%+v", got)
		}
	}
	b.Run("hand-back-in-place", func(b *testing.B) {
		for range b.N {
			work(b)
			back(b)
		}
	})
	b.Run("make", func(b *testing.B) {
		for range b.N {
			_, err := tree.Private(ctx)
			must(b, err)
		}
	})
	p, err := tree.Private(ctx)
	must(b, err)
	b.Run("hand-back", func(b *testing.B) {
		for range b.N {
			work(b, "--git-dir="+p.Dir, "--work-tree="+tree.Dir())
			back(b)
		}
	})
}
