package worktree

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/worktree/saved"
)

func TestOneIssue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("42", "r1")
	base := f.base().Commit
	if h, err := tree.Earlier(t.Context()); tree.Start() != base || err != nil || h.Tip != base || len(h.Commits) != 0 {
		t.Errorf("start = %s, earlier work %+v, %v", tree.Start(), h, err)
	}
	first := f.commit(tree.Dir(), "b.txt", "b", "add b")
	got := f.imported(tree)
	want := Import{Tip: first, Commits: []Commit{{SHA: first, Subject: "add b"}}, New: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	second := f.commit(tree.Dir(), "c.txt", "c", "add c")
	got = f.imported(tree)
	if got.New != 1 || len(got.Commits) != 2 || got.Tip != second {
		t.Errorf("second import: %+v", got)
	}
	if got = f.imported(tree); got.New != 0 || len(got.Commits) != 2 {
		t.Errorf("an import of nothing: %+v", got)
	}
	f.remove(tree)
	for _, ref := range []string{"refs/heads/ralph/42", "refs/ralph/work/42"} {
		if f.ref(ref) != second {
			t.Errorf("%s = %s, want %s", ref, f.ref(ref), second)
		}
	}
	if _, err := os.Stat(tree.Dir()); !os.IsNotExist(err) {
		t.Errorf("worktree still there: %v", err)
	}
	if trees, err := f.repo.Trees(context.Background()); err != nil || len(trees) != 0 {
		t.Errorf("trees = %v, %v", trees, err)
	}
	if out := f.git("worktree", "list", "--porcelain"); filepath.Base(out) == "" || countLines(out, "worktree ") != 1 {
		t.Errorf("git still lists: %s", out)
	}
	f.remove(tree) // removing again is not an error
}

func TestUncommittedChangesAreSaved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r1")
	d := tree.Dir()
	f.write(d, "a.txt", "changed\n")
	f.write(d, "new file é.txt", "new")
	f.write(d, "staged.txt", "staged")
	f.sh(d, "git", "add", "staged.txt")
	f.write(d, "staged.txt", "staged, then changed")
	f.write(d, "ignored/x", "ignored")
	f.write(d, "dir/*", "a star")
	if err := os.Symlink("a.txt", filepath.Join(d, "link")); err != nil {
		t.Fatal(err)
	}
	before := f.sh(d, "git", "status", "--porcelain=v2")
	got := f.imported(tree)
	if got.WIP == "" || got.WIP != f.ref("refs/ralph/wip/k") {
		t.Fatalf("wip = %q, ref %q", got.WIP, f.ref("refs/ralph/wip/k"))
	}
	for path, want := range map[string]string{
		"a.txt": "changed", "new file é.txt": "new", "staged.txt": "staged, then changed", "dir/*": "a star", "link": "a.txt",
	} {
		if content := f.show(got.WIP, path); content != want {
			t.Errorf("%s = %q, want %q", path, content, want)
		}
	}
	if _, err := f.try(f.dir, "git", "cat-file", "-e", got.WIP+":ignored/x"); err == nil {
		t.Error("an ignored file was saved")
	}
	if after := f.sh(d, "git", "status", "--porcelain=v2"); after != before {
		t.Errorf("the worktree's state changed:\n%s\nwas:\n%s", after, before)
	}
	if again := f.imported(tree); again.WIP != got.WIP {
		t.Errorf("saved twice: %s and %s", got.WIP, again.WIP)
	}
	f.write(d, "a.txt", "changed again\n")
	newer := f.imported(tree)
	if parents := f.git("rev-parse", newer.WIP+"^1", newer.WIP+"^2"); parents != got.Tip+"\n"+got.WIP {
		t.Errorf("parents = %s", parents)
	}
	f.remove(tree)
}

func TestDeletedRenamedAndReplacedFilesAreSaved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.commit(f.dir, "dir/file", "x", "dir")
	f.commit(f.dir, "dir2/file", "x", "dir2")
	f.commit(f.dir, "gone", "x", "gone")
	tree := f.add("k", "r1")
	d := tree.Dir()
	f.sh(d, "rm", "gone", "a.txt")
	f.sh(d, "rm", "-r", "dir", "dir2")
	f.write(d, "a.txt/inside", "was a file")
	f.write(d, "dir", "was a folder")
	if err := os.Symlink(".", filepath.Join(d, "dir2")); err != nil {
		t.Fatal(err)
	}
	got := f.imported(tree)
	want := ".gitignore\na.txt/inside\ndir\ndir2"
	if names := f.git("ls-tree", "-r", "--name-only", got.WIP); names != want {
		t.Errorf("saved:\n%s\nwant:\n%s", names, want)
	}
	f.remove(tree)
}

func TestTidiedChangesLeaveTheSavedOnes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r1")
	f.write(tree.Dir(), "b", "b")
	f.imported(tree)
	f.commit(tree.Dir(), "b", "b", "the same, committed")
	if got := f.imported(tree); got.WIP != "" || f.ref("refs/ralph/wip/k") != "" {
		t.Errorf("changes that are committed are still kept: %+v", got)
	}
	f.write(tree.Dir(), "b", "other")
	saved := f.imported(tree).WIP
	f.sh(tree.Dir(), "git", "checkout", "-q", "b")
	if got := f.imported(tree); got.WIP != "" || f.ref("refs/ralph/wip/k") != saved {
		t.Errorf("changes that were dropped are not kept: %+v", got)
	}
	f.remove(tree)
}

// Of an earlier run only what it saved last counts: what that has replaced is not left.
func TestReplacedChangesAreNotLeft(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.add("k", "r1")
	for _, text := range []string{"half", "whole"} {
		f.write(first.Dir(), "draft", text)
		f.imported(first)
	}
	f.remove(first)
	tree := f.add("k", "r2")
	f.commit(tree.Dir(), "draft", "whole", "the draft")
	if got := f.imported(tree); got.WIP != "" || f.ref("refs/ralph/wip/k") != "" || got.Earlier != (saved.Earlier{}) {
		t.Errorf("%+v", got)
	}
	f.remove(tree)
}

// Changes that an earlier run has left stay saved when a later run commits its own.
func TestEarlierRunsChangesStaySaved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.add("k", "r1")
	f.write(first.Dir(), "draft", "x")
	draft := f.imported(first).WIP
	f.remove(first)
	tree := f.add("k", "r2")
	want := saved.Earlier{Commit: draft, Run: "r1"}
	f.write(tree.Dir(), "b", "b")
	if got := f.imported(tree); got.WIP == "" || got.WIP == draft {
		t.Errorf("%+v", got)
	}
	f.commit(tree.Dir(), "b", "b", "the same, committed")
	if got := f.imported(tree); got.WIP != "" || f.ref("refs/ralph/wip/k") != draft || got.Earlier != want {
		t.Errorf("%+v", got)
	}
	if got, err := tree.Imported(t.Context()); err != nil || got.WIP != "" || got.Earlier != want {
		t.Errorf("read again: %+v, %v", got, err)
	}
	f.commit(tree.Dir(), "draft", "x", "the draft, too")
	f.sh(tree.Dir(), "git", "rm", "-q", "b")
	f.sh(tree.Dir(), "git", "commit", "-qm", "as the first run had it")
	if got := f.imported(tree); got.WIP != "" || f.ref("refs/ralph/wip/k") != "" || got.Earlier != (saved.Earlier{}) {
		t.Errorf("%+v", got)
	}
	f.remove(tree)
}

// countLines counts the lines of s with the prefix.
func countLines(s, prefix string) int {
	n := 0
	for _, line := range splitLines(s) {
		if len(line) >= len(prefix) && line[:len(prefix)] == prefix {
			n++
		}
	}
	return n
}
