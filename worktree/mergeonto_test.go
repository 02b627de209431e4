package worktree

import (
	"context"
	"errors"
	"testing"
)

// sideMerge makes a merge commit that holds a file of its own.
const sideMerge = `git switch -qc side && echo s >side && git add side && git commit -qm side && git switch -q - &&
	echo m >mine && git add mine && git commit -qm mine && git merge -q --no-commit --no-ff side &&
	echo only >inmerge && git add inmerge && git commit -qm 'merge side'`

func TestRebaseKeepsWhatOnlyAMergeHolds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r")
	f.sh(tree.Dir(), "sh", "-c", sideMerge)
	old := f.handBack(tree).Tip
	onto := f.commit(f.dir, "c", "x", "main moves")
	tip, err := tree.Rebase(context.Background(), f.base())
	if err != nil {
		t.Fatal(err)
	}
	if f.show(tip, "inmerge") != "only" || f.show(tip, "c") != "x" || f.git("rev-parse", tip+"^1", tip+"^2") != onto+"\n"+old {
		t.Errorf("rebased: %s", f.git("log", "--graph", "--format=%h %s", tip))
	}
	if s := f.sh(tree.Dir(), "git", "status", "--porcelain", "--branch"); s != "## ralph/k" || f.read(tree.Dir(), "c") != "x" {
		t.Errorf("the worktree: %s", s)
	}
	if got := f.handBack(tree); got.Tip != tip || got.New != 0 || tree.Spec().Base.Commit != onto || f.ref(workRef("k")) != tip {
		t.Errorf("handed back %+v", got)
	}
	f.commit(f.dir, "mine", "conflict", "main conflicts")
	if _, err := tree.Rebase(context.Background(), f.base()); !errors.Is(err, ErrConflict) {
		t.Fatalf("conflict: %v", err)
	}
	if got := f.handBack(tree); got.Tip != tip || tree.Spec().Base.Commit != onto {
		t.Errorf("after the conflict: %+v", got)
	}
	f.remove(tree)
}

func TestRebaseKeepsAConflictThatWasResolved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r")
	f.commit(tree.Dir(), "a.txt", "agent\n", "mine")
	f.commit(f.dir, "a.txt", "person\n", "theirs")
	f.sh(tree.Dir(), "sh", "-c", "git merge -q main; echo both >a.txt && git commit -qam merged")
	merged := f.handBack(tree).Tip
	// The base that the merge contains already costs nothing.
	if tip, err := tree.Rebase(context.Background(), f.base()); err != nil || tip != merged {
		t.Errorf("onto what it contains: %s, %v", tip, err)
	}
	f.commit(f.dir, "c", "x", "elsewhere")
	tip, err := tree.Rebase(context.Background(), f.base())
	if err != nil || f.show(tip, "a.txt") != "both" || f.show(tip, "c") != "x" {
		t.Errorf("rebased to %s: %v", tip, err)
	}
	f.remove(tree)
}

func TestPrivateRebaseOfAMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	in.sh(sideMerge)
	f.commit(f.dir, "c", "c", "on main")
	tip, err := in.tree.Rebase(context.Background(), f.base())
	if err != nil {
		t.Fatal(err)
	}
	if out := in.sh("git status --porcelain; git rev-parse HEAD; cat inmerge c"); out != tip+"\nonly\nc" {
		t.Errorf("inside: %s", out)
	}
	if got := f.handBack(in.tree); got.Tip != tip || got.WIP != "" {
		t.Errorf("handed back %+v", got)
	}
	f.remove(in.tree)
}

// TestRebaseOfAMergeCrash has the files half-way to the merge, as a power loss would leave them.
func TestRebaseOfAMergeCrash(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r")
	f.sh(tree.Dir(), "sh", "-c", sideMerge)
	old := f.handBack(tree).Tip
	f.commit(f.dir, "c", "x", "main moves")
	onto := f.base()
	merged := f.sh(tree.Dir(), "sh", "-c", "git merge -q --no-edit main && git rev-parse HEAD && git reset -q --hard HEAD^1")
	f.write(tree.Dir(), "c", "x")
	if err := tree.update(func(rec *record) { rec.Rebasing, rec.Merging = &onto, merged }); err != nil {
		t.Fatal(err)
	}
	got := f.handBack(tree)
	if got.Tip != merged || got.WIP != "" || tree.Spec().Base != onto || got.Tip == old {
		t.Errorf("handed back %+v", got)
	}
	f.remove(tree)
}
