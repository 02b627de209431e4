package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// branchWith makes a finished branch ralph/<key> with one commit.
func (f *fixture) branchWith(key, file, content string) (tip string) {
	f.Helper()
	tree := f.add(key, "run-"+key)
	tip = f.commit(tree.Dir(), file, content, "work on "+key)
	f.imported(tree)
	f.remove(tree)
	return tip
}

func TestMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	one, two := f.branchWith("1", "one", "1"), f.branchWith("2", "two", "2")
	f.write(f.dir, "mine", "not in the way")
	commit, err := f.repo.Merge(ctx, f.base(), one, "merge 1")
	if err != nil || commit != one {
		t.Fatalf("fast-forward: %s, %v", commit, err)
	}
	if commit, err = f.repo.Merge(ctx, f.base(), two, "merge 2, fixes #9\n\nbody\n"); err != nil {
		t.Fatal(err)
	}
	if f.git("rev-parse", "main", "HEAD^1", "HEAD^2") != commit+"\n"+one+"\n"+two {
		t.Error("not a merge of the two")
	}
	if got := f.git("log", "-1", "--format=%an %B"); !strings.HasPrefix(got, "Ada merge 2, fixes # 9\n\nbody") {
		t.Errorf("commit = %q", got)
	}
	if got := f.git("status", "--porcelain"); got != "?? mine" {
		t.Errorf("status = %q", got)
	}
	if f.read(f.dir, "one")+f.read(f.dir, "two") != "12" {
		t.Error("the checkout has not moved")
	}
	if again, err := f.repo.Merge(ctx, f.base(), two, "again"); err != nil || again != commit {
		t.Errorf("merge of what is merged: %s, %v", again, err)
	}
}

// The checkout moves with its branch also if the git directory is elsewhere, as in a submodule.
func TestMergeIntoCheckoutWithGitDirElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("init", "-q", "--separate-git-dir", filepath.Join(realDir(t), "module"))
	f.open(Options{})
	one := f.branchWith("1", "one", "1")
	if commit, err := f.repo.Merge(context.Background(), f.base(), one, "m"); err != nil || commit != one {
		t.Fatalf("%s, %v", commit, err)
	}
	if got := f.git("status", "--porcelain"); got != "" || f.read(f.dir, "one") != "1" {
		t.Errorf("the checkout has not moved: %q", got)
	}
}

func TestMergeWithoutCheckout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	one := f.branchWith("1", "one", "1")
	base := f.base()
	f.git("switch", "-q", "-c", "elsewhere")
	commit, err := f.repo.Merge(context.Background(), base, one, "m")
	if err != nil || f.ref("refs/heads/main") != commit {
		t.Errorf("%s, %v", commit, err)
	}
}

// TestMergeRefuses checks that a refused merge changes nothing, and that the command in its message works.
func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	refuse := func(f *fixture, base Base, tip string, want error) string {
		f.Helper()
		head, status := f.git("rev-parse", "HEAD"), f.git("status", "--porcelain")
		_, err := f.repo.Merge(ctx, base, tip, "m")
		if !errors.Is(err, want) {
			f.Fatalf("got %v, want %v", err, want)
		}
		if f.git("rev-parse", "HEAD") != head || f.git("status", "--porcelain") != status {
			f.Error("the checkout has changed")
		}
		if strings.Contains(err.Error(), "\n") {
			f.Errorf("more than one line: %q", err)
		}
		if want == ErrDirty && !strings.Contains(err.Error(), "(a.txt)") && !strings.Contains(err.Error(), "(new)") {
			f.Errorf("the file in the way is not named: %v", err)
		}
		_, command, _ := strings.Cut(err.Error(), ": git ")
		return "git " + command
	}
	t.Run("dirty", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		tip := f.branchWith("1", "a.txt", "theirs")
		f.write(f.dir, "a.txt", "mine")
		f.write(f.dir, "a-note", "mine") // not in the way
		command := refuse(f, f.base(), tip, ErrDirty)
		f.sh(f.dir, "sh", "-c", command)
		if f.read(f.dir, "a.txt") != "theirs" {
			t.Errorf("%s did not merge", command)
		}
	})
	for _, flag := range []string{"assume-unchanged", "skip-worktree"} {
		t.Run("dirty, and marked "+flag, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tip := f.branchWith("1", "a.txt", "theirs")
			f.git("update-index", "--"+flag, "a.txt")
			if err := f.repo.CheckMerge(ctx, f.base(), tip); err != nil {
				t.Errorf("in the way, although it is as it was: %v", err)
			}
			f.write(f.dir, "a.txt", "mine")
			refuse(f, f.base(), tip, ErrDirty)
			if f.read(f.dir, "a.txt") != "mine" {
				t.Error("the file was overwritten")
			}
		})
	}
	t.Run("untracked and ignored files", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		tree := f.add("1", "r")
		f.write(tree.Dir(), "ignored/x", "theirs")
		f.sh(tree.Dir(), "git", "add", "-f", "ignored/x")
		tip := f.commit(tree.Dir(), "new", "theirs", "w")
		f.write(f.dir, "new", "mine")
		refuse(f, f.base(), tip, ErrDirty)
		f.sh(f.dir, "rm", "new")
		f.write(f.dir, "ignored/x", "mine")
		if _, err := f.repo.Merge(ctx, f.base(), tip, "m"); err == nil || f.read(f.dir, "ignored/x") != "mine" {
			t.Errorf("an ignored file was overwritten: %v", err)
		}
	})
	t.Run("conflict", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		tip := f.branchWith("1", "a.txt", "theirs")
		f.commit(f.dir, "a.txt", "mine", "mine")
		command := refuse(f, f.base(), tip, ErrConflict)
		if _, err := f.try(f.dir, "sh", "-c", command); err == nil || f.git("diff", "--name-only", "--diff-filter=U") != "a.txt" {
			t.Errorf("%q does not lead to the conflict", command)
		}
	})
	t.Run("moved", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		tip, base := f.branchWith("1", "b", "theirs"), f.base()
		f.commit(f.dir, "c", "mine", "mine")
		refuse(f, base, tip, ErrMoved)
	})
	t.Run("not a branch", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		base := f.base()
		base.Ref = "refs/remotes/origin/main"
		if _, err := f.repo.Merge(ctx, base, base.Commit, "m"); err == nil {
			t.Error("merged into a remote branch")
		}
	})
}

func TestTenMergesAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	var tips []string
	for i := range 10 {
		tips = append(tips, f.branchWith(fmt.Sprint(i), fmt.Sprint("file", i), "x"))
	}
	var group sync.WaitGroup
	for _, tip := range tips {
		group.Go(func() {
			unlock, err := f.repo.LockMerges(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			base, err := f.repo.Base(ctx, "main")
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := f.repo.Merge(ctx, base, tip, "m"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if files := f.git("ls-files", "file*"); countLines(files, "file") != 10 || f.git("status", "--porcelain") != "" {
		t.Errorf("after ten merges: %s\n%s", files, f.git("status", "--porcelain"))
	}
}

func TestPush(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := f.withRemote()
	f.git("config", "remote.origin.mirror", "true") // ralph pushes single refs nevertheless
	ctx := context.Background()
	tree := f.add("k", "r1")
	tip := f.commit(tree.Dir(), "b", "x", "work")
	f.imported(tree)
	for range 2 {
		if err := tree.Push(ctx, tip, nil, ClaimRecord{}, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.sh(bare, "git", "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/ralph", "refs/tags"); got != "refs/heads/ralph/k "+tip {
		t.Errorf("the remote has %s", got)
	}
	other := f.clone(bare)
	theirTree := other.add("k", "r2")
	if theirTree.Start() != tip {
		t.Errorf("the other machine starts at %s, want %s", theirTree.Start(), tip)
	}
	theirs := other.commit(theirTree.Dir(), "c", "x", "their work")
	other.imported(theirTree)
	if err := theirTree.Push(ctx, theirs, nil, ClaimRecord{}, false); err != nil {
		t.Fatal(err)
	}
	mine := f.commit(tree.Dir(), "d", "x", "my work")
	f.imported(tree)
	if err := tree.Push(ctx, mine, nil, ClaimRecord{}, false); !errors.Is(err, ErrMoved) || errors.Is(err, ErrRemote) {
		t.Errorf("push over theirs: %v", err)
	}
	// The next run continues from the branch that people see; the local tip is kept.
	next := f.add("k", "r3")
	if next.Start() != theirs || f.ref("refs/ralph/old/k/"+mine[:12]) != mine {
		t.Errorf("start = %s, want %s", next.Start(), theirs)
	}
	f.sh("", "mv", bare, bare+".away")
	if err := next.Push(ctx, mine, nil, ClaimRecord{}, false); !errors.Is(err, ErrRemote) {
		t.Errorf("push without remote: %v", err)
	}
}

func TestBranchesAndDrop(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	one, two := f.branchWith("1", "one", "1"), f.branchWith("2", "two", "2")
	if _, err := f.repo.Merge(ctx, f.base(), one, "m"); err != nil {
		t.Fatal(err)
	}
	tree := f.add("3", "r")
	f.write(tree.Dir(), "x", "x")
	wip := f.imported(tree).WIP
	got, err := f.repo.Branches(ctx, f.base())
	if err != nil {
		t.Fatal(err)
	}
	want := []Branch{
		{Key: "1", Name: "ralph/1", Tip: one, Merged: true},
		{Key: "2", Name: "ralph/2", Tip: two, Ahead: 1},
		{Key: "3", Name: "ralph/3", Tip: f.base().Commit, Merged: true, WIP: wip, Tree: tree.Dir()},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("branches:\n%+v\nwant\n%+v", got, want)
	}
	if err := f.repo.Drop(ctx, "1", two); !errors.Is(err, ErrMoved) {
		t.Errorf("drop at another tip: %v", err)
	}
	if err := f.repo.Drop(ctx, "3", f.base().Commit); err == nil {
		t.Error("dropped a branch that is checked out")
	}
	f.remove(tree)
	for key, tip := range map[string]string{"1": one, "2": two, "3": f.base().Commit} {
		if err := f.repo.Drop(ctx, key, tip); err != nil {
			t.Error(err)
		}
	}
	if refs := f.git("for-each-ref", "refs/ralph", "refs/heads/ralph"); refs != "" {
		t.Errorf("left: %s", refs)
	}
}

// A branch counts as merged if the base has its changes, in any commits. It does not if a change is missing or if it
// changes nothing.
func TestBranchesThatAreSquashed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.branchWith("squashed", "one", "1")
	f.branchWith("partly", "two", "2")
	f.branchWith("nothing", "three", "3")
	f.git("switch", "-q", "ralph/partly")
	f.commit(f.dir, "four", "4", "more")
	f.git("switch", "-q", "ralph/nothing")
	f.git("revert", "--no-edit", "HEAD")
	f.git("switch", "-q", "main")
	for _, name := range []string{"ralph/squashed", "ralph/partly^"} {
		f.git("merge", "-q", "--squash", name)
		f.git("commit", "-qm", "by hand")
	}
	all, err := f.repo.Branches(t.Context(), f.base())
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, b := range all {
		if b.Merged != (b.Key == "squashed") || b.Ahead == 0 {
			t.Errorf("%+v", b)
		}
	}
}
