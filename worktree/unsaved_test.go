package worktree

import (
	"os"
	"testing"
)

// A tree in which an agent has worked counts as unsaved until it is imported. Discard loses unsaved work.
func TestUnsaved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree, err := f.repo.Add(t.Context(), Spec{Run: "1", Key: "a", Branch: "ralph/a", Base: f.base()})
	if err != nil {
		t.Fatal(err)
	}
	want := func(unsaved bool) {
		t.Helper()
		trees, err := f.repo.Trees(t.Context()) // as another process reads them
		if err != nil || tree.Unsaved() != unsaved || trees[0].Unsaved() != unsaved {
			t.Errorf("unsaved is %v, %v, want %v", tree.Unsaved(), err, unsaved)
		}
	}
	want(false)
	f.use(tree)
	want(true)
	head := f.commit(tree.Dir(), "b.txt", "b\n", "work")
	if _, err := tree.Import(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want(false)
	f.use(tree)
	f.write(tree.Dir(), "c.txt", "c\n")
	if err := tree.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", tree.Dir(), err)
	}
	if got := f.git("rev-parse", "ralph/a"); got != head {
		t.Errorf("the branch is at %s", got)
	}
}

// If commits are not on ralph's branch, Branches looks for them on the user's branches. It distinguishes changes saved
// before the last commit from those saved on it.
func TestBranchesPlaceSavedWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree, err := f.repo.Add(t.Context(), Spec{Run: "1", Key: "a", Branch: "theirs", Base: f.base()})
	if err != nil {
		t.Fatal(err)
	}
	f.write(tree.Dir(), "draft.txt", "x\n")
	if _, err := tree.Import(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	one := func() Branch {
		t.Helper()
		all, err := f.repo.Branches(t.Context(), f.base())
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	f.sh(tree.Dir(), "git", "clean", "-qf")
	f.commit(tree.Dir(), "b.txt", "b\n", "work")
	f.imported(tree)
	f.remove(tree)
	if b := one(); b.Name != "" || b.ContainedIn != "theirs" || !b.Stale || b.WIP == "" {
		t.Errorf("%+v", b)
	}
	if tree, err = f.repo.Add(t.Context(), Spec{Run: "2", Key: "a", Branch: "theirs", Base: f.base()}); err != nil {
		t.Fatal(err)
	}
	f.write(tree.Dir(), "after.txt", "x\n")
	f.imported(tree)
	f.remove(tree)
	if b := one(); b.Stale || b.WIP == "" {
		t.Errorf("%+v", b)
	}
	f.git("branch", "-qD", "theirs")
	if b := one(); b.ContainedIn != "" || b.Ahead != 1 {
		t.Errorf("%+v", b)
	}
}
