package worktree

import (
	"os"
	"strings"
	"testing"
)

// What would be lost with a worktree is named; once it is handed back there is nothing. Discard loses it.
func TestUntaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree, err := f.repo.Add(t.Context(), Spec{Run: "1", Key: "a", Branch: "ralph/a", Base: f.base()})
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string) {
		t.Helper()
		got, err := tree.Untaken(t.Context())
		if err != nil || !strings.HasPrefix(got, what) || what == "" && got != "" {
			t.Errorf("got %q, %v, want %q", got, err, what)
		}
	}
	want("")
	head := f.commit(tree.Dir(), "b.txt", "b\n", "work")
	want("commit " + short(head))
	if _, err := tree.HandBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("")
	f.write(tree.Dir(), "c.txt", "c\n")
	want("uncommitted changes (c.txt)")
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

// Commits on no branch of ralph's own name are looked for on people's; changes of before the last commit are told from
// those on it.
func TestBranchesPlaceSavedWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree, err := f.repo.Add(t.Context(), Spec{Run: "1", Key: "a", Branch: "theirs", Base: f.base()})
	if err != nil {
		t.Fatal(err)
	}
	f.write(tree.Dir(), "draft.txt", "x\n")
	if _, err := tree.HandBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	one := func() Branch {
		t.Helper()
		if _, err := tree.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := f.repo.Branches(t.Context(), f.base())
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	f.sh(tree.Dir(), "git", "clean", "-qf")
	f.commit(tree.Dir(), "b.txt", "b\n", "work")
	if b := one(); b.Name != "" || b.On != "theirs" || !b.Passed || b.WIP == "" {
		t.Errorf("%+v", b)
	}
	if tree, err = f.repo.Add(t.Context(), Spec{Run: "2", Key: "a", Branch: "theirs", Base: f.base()}); err != nil {
		t.Fatal(err)
	}
	f.write(tree.Dir(), "after.txt", "x\n")
	if b := one(); b.Passed || b.WIP == "" {
		t.Errorf("%+v", b)
	}
	f.git("branch", "-qD", "theirs")
	if b := one(); b.On != "" || b.Ahead != 1 {
		t.Errorf("%+v", b)
	}
}
