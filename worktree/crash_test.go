package worktree

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/record"
)

// TestCrashRemains leaves a worktree as a crash at some point would. The next run of the key starts normally, and nothing
// is left.
func TestCrashRemains(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		crash func(f *fixture, tree *Tree)
		lost  bool // the work in the worktree is lost
	}{
		"agent at work": {crash: func(*fixture, *Tree) {}},
		"only the record is written": {lost: true, crash: func(f *fixture, tree *Tree) {
			f.half(tree)
			f.sh("", "rm", "-rf", tree.Dir(), tree.rec.GitDir)
		}},
		"git has made its record only": {lost: true, crash: func(f *fixture, tree *Tree) {
			f.half(tree)
			f.sh("", "rm", "-rf", tree.Dir(), filepath.Join(tree.rec.GitDir, "index"))
		}},
		"the files are half checked out": {lost: true, crash: func(f *fixture, tree *Tree) {
			f.half(tree)
			f.sh(tree.Dir(), "rm", "a.txt", filepath.Join(tree.rec.GitDir, "index"))
		}},
		"the record does not know yet that it was made": {lost: true, crash: func(f *fixture, tree *Tree) { f.half(tree) }},
		"removing: files are gone": {lost: true, crash: func(f *fixture, tree *Tree) {
			f.imported(tree)
			f.sh("", "rm", "-rf", tree.Dir())
		}},
		"removing: files and git's record are gone": {lost: true, crash: func(f *fixture, tree *Tree) {
			f.imported(tree)
			f.sh("", "rm", "-rf", tree.Dir(), tree.rec.GitDir)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree := f.add("k", "r1")
			tip := f.commit(tree.Dir(), "done", "x", "work")
			f.write(tree.Dir(), "undone", "y")
			test.crash(f, tree)
			f.open(Options{}) // as the next process would
			next := f.add("k", "r1")
			if next.Start() != tip {
				t.Errorf("start = %s, want %s", next.Start(), tip)
			}
			if wip := f.ref("refs/ralph/wip/k"); !test.lost && (wip == "" || f.show(wip, "undone") != "y") {
				t.Errorf("the changes are lost")
			}
			if s := f.sh(next.Dir(), "git", "status", "--porcelain", "--branch"); s != "## ralph/k" {
				t.Errorf("status: %s", s)
			}
			f.imported(next)
			f.remove(next)
			f.clean()
		})
	}
}

// half makes the record say that git has not finished making the worktree.
func (f *fixture) half(tree *Tree) {
	f.Helper()
	if err := tree.updateRecord(func(rec *record.Record) { rec.Incomplete, rec.Used, rec.InUse = true, false, false }); err != nil {
		f.Fatal(err)
	}
}

// clean checks that no traces of worktrees are left.
func (f *fixture) clean() {
	f.Helper()
	for _, pattern := range []string{
		filepath.Join(f.state, "worktrees", "*"), filepath.Join(f.state, "trash", "*"), filepath.Join(f.state, "tmp", "*", "*", "*"),
		filepath.Join(f.dir, ".git", "worktrees", "*"),
	} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			f.Errorf("left: %v, %v", left, err)
		}
	}
}

// TestLostStateFolder deletes all of ralph's own state: the refs in the repository are enough to continue.
func TestLostStateFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r1")
	tip := f.commit(tree.Dir(), "done", "x", "work")
	f.sh("", "rm", "-rf", f.state)
	f.open(Options{})
	next := f.add("k", "r2")
	if next.Start() != tip {
		t.Errorf("start = %s, want %s", next.Start(), tip)
	}
	f.imported(next)
	f.remove(next)
	f.clean()
}

func TestRemoveRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]func(f *fixture, d string){
		"a commit":          func(f *fixture, d string) { f.commit(d, "b", "x", "work") },
		"an untracked file": func(f *fixture, d string) { f.write(d, "b", "x") },
		"a later change": func(f *fixture, d string) {
			f.write(d, "a.txt", "x")
			trees, err := f.repo.Trees(context.Background())
			if err != nil {
				f.Fatal(err)
			}
			f.imported(trees[0])
			f.use(trees[0])
			f.write(d, "a.txt", "y")
		},
		"git's record is gone": func(f *fixture, d string) {
			f.sh("", "rm", "-rf", f.sh(d, "git", "rev-parse", "--absolute-git-dir"))
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			do(f, f.add("k", "r1").Dir())
			trees, err := f.open(Options{}).Trees(t.Context()) // as the next process reads them
			if err != nil {
				t.Fatal(err)
			}
			tree := trees[0]
			if err := tree.Remove(context.Background()); !errors.Is(err, ErrUnsaved) {
				t.Errorf("removed: %v", err)
			}
			f.read(tree.Dir(), "a.txt")
		})
	}
}

// TestRemoveReadOnlyFolders removes read-only folders, such as package managers leave.
func TestRemoveReadOnlyFolders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r1")
	f.write(tree.Dir(), "ignored/cache/deep/file", "x")
	f.sh(tree.Dir(), "chmod", "-R", "a-w", "ignored/cache")
	f.imported(tree)
	f.remove(tree)
	f.clean()
}

// TestWhereARunStarts lists which earlier work a run continues.
func TestWhereARunStarts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do    func(f *fixture, tip string)
		fresh bool
		want  string // "tip" or "base"
		kept  bool   // the tip is under refs/ralph/old
	}{
		"continues":           {do: func(*fixture, string) {}, want: "tip"},
		"fresh":               {do: func(*fixture, string) {}, fresh: true, want: "base", kept: true},
		"merged":              {do: func(f *fixture, tip string) { f.git("merge", "-q", tip) }, want: "base"},
		"branch deleted":      {do: func(f *fixture, _ string) { f.git("branch", "-q", "-D", "ralph/k") }, want: "base", kept: true},
		"base has moved on":   {do: func(f *fixture, _ string) { f.commit(f.dir, "m", "x", "main") }, want: "tip"},
		"merged and moved on": {do: func(f *fixture, tip string) { f.git("merge", "-q", tip); f.commit(f.dir, "m", "x", "main") }, want: "base"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tip := f.branchWith("k", "b", "x")
			test.do(f, tip)
			s := f.spec("k", "r2")
			s.Fresh = test.fresh
			tree, err := f.repo.Add(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"tip": tip, "base": s.Base.Commit}[test.want]
			if tree.Start() != want || f.ref("refs/heads/ralph/k") != want || f.sh(tree.Dir(), "git", "rev-parse", "HEAD") != want {
				t.Errorf("start = %s, want %s", tree.Start(), want)
			}
			if kept := f.ref("refs/ralph/old/k/"+tip[:12]) == tip; kept != test.kept {
				t.Errorf("kept = %v", kept)
			}
			f.imported(tree)
			f.remove(tree)
		})
	}
}

func TestBranchInUse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.branchWith("k", "b", "x")
	f.git("switch", "-q", "ralph/k")
	_, err := f.repo.Add(context.Background(), f.spec("k", "r2"))
	want := "add worktree for k: branch ralph/k is checked out in " + f.dir + "; free it with: git -C " + f.dir + " switch --detach"
	if err == nil || err.Error() != want {
		t.Fatalf("got  %v\nwant %s", err, want)
	}
	f.sh("", "git", "-C", f.dir, "switch", "-q", "--detach")
	f.add("k", "r2")
}

// A copied repository contains the entries of the original's worktrees. The worktrees stay with the original.
func TestCopiedRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.add("k", "r1")
	f.commit(run.Dir(), "b", "x", "work")
	original := f.repo
	f.dir, f.state = filepath.Join(realDir(t), "copy"), filepath.Join(realDir(t), "state")
	f.sh("", "cp", "-R", original.location.Top, f.dir)
	f.open(Options{})
	if tree := f.add("k", "r2"); f.show(tree.Start(), "b") != "x" {
		t.Errorf("the run in the copy starts at %s", tree.Start())
	}
	if at := f.sh(run.Dir(), "git", "symbolic-ref", "HEAD"); at != "refs/heads/ralph/k" {
		t.Errorf("the original's worktree is at %s", at)
	}
	again := f.spec("k", "r3") // from another state folder of the same repository
	f.state = filepath.Join(realDir(t), "state")
	if _, err := f.open(Options{}).Add(t.Context(), again); err == nil || !strings.Contains(err.Error(), "is checked out in") {
		t.Errorf("a worktree of the same repository: %v", err)
	}
}

func TestMissingFilter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.commit(f.dir, "x.big", "pointer", "big")
	f.commit(f.dir, ".gitattributes", "*.big filter=big\n", "attributes")
	f.git("config", "filter.big.smudge", "no-such-program")
	f.git("config", "filter.big.required", "true")
	_, err := f.repo.Add(context.Background(), f.spec("k", "r1"))
	if err == nil {
		t.Fatal("added a worktree without its files")
	}
	t.Log(err)
	f.clean()
}

func TestKeysDoNotCollide(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	one, two := f.spec("a-b", "r"), f.spec("a-b", "r")
	two.Branch = "ralph/a/b"
	if one.Folder() == two.Folder() {
		t.Error("two branches share a folder")
	}
}
