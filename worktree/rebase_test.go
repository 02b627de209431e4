package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/merge"
	"github.com/ralph-pool/ralph/worktree/record"
)

// sideMerge makes a merge commit that adds its own file.
const sideMerge = `git switch -qc side && echo s >side && git add side && git commit -qm side && git switch -q - &&
	echo m >mine && git add mine && git commit -qm mine && git merge -q --no-commit --no-ff side &&
	echo only >inmerge && git add inmerge && git commit -qm 'merge side'`

func TestRebaseKeepsWhatOnlyAMergeHolds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r")
	f.sh(tree.Dir(), "sh", "-c", sideMerge)
	old := f.imported(tree).Tip
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
	if got := f.imported(tree); got.Tip != tip || got.New != 0 || tree.Spec().Base.Commit != onto || f.ref(f.repo.refNames.Work("k")) != tip {
		t.Errorf("imported %+v", got)
	}
	f.commit(f.dir, "mine", "conflict", "main conflicts")
	if _, err := tree.Rebase(context.Background(), f.base()); !errors.Is(err, ErrConflict) {
		t.Fatalf("conflict: %v", err)
	}
	if got := f.imported(tree); got.Tip != tip || tree.Spec().Base.Commit != onto {
		t.Errorf("after the conflict: %+v", got)
	}
	f.remove(tree)
}

// A commit that a person removes from the base stays removed.
func TestRebaseLeavesOutWhatTheBaseHasLost(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(f *fixture, unwanted string) []string{
		"during the run": func(f *fixture, _ string) []string {
			f.git("reset", "-q", "--hard", "HEAD~1")
			return nil
		},
		"replaced during the run": func(f *fixture, _ string) []string {
			f.git("rm", "-q", "unwanted")
			f.git("commit", "-q", "--amend", "--allow-empty", "-m", "wanted")
			return nil
		},
		"before the run": func(f *fixture, unwanted string) []string { return []string{unwanted} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			unwanted := f.commit(f.dir, "unwanted", "x", "unwanted")
			if name == "before the run" {
				f.git("branch", "ralph/k")
				f.git("reset", "-q", "--hard", "HEAD~1")
			}
			tree := f.add("k", "r")
			f.commit(tree.Dir(), "b", "x", "mine")
			f.imported(tree)
			former := lost(f, unwanted)
			tip, err := tree.Rebase(t.Context(), f.base(), former...)
			if err != nil || f.git("rev-parse", tip+"^") != f.base().Commit || f.git("ls-tree", "--name-only", tip, "unwanted") != "" {
				t.Errorf("rebased to %s: %v\n%s", tip, err, f.git("log", "--format=%h %s", cmp.Or(tip, "main")))
			}
			f.remove(tree)
		})
	}
}

// The command that solves a conflict by hand does not bring back what the base has lost.
func TestConflictOverALostCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.commit(f.dir, "unwanted", "x", "unwanted")
	tree := f.add("k", "r")
	f.commit(tree.Dir(), "file", "theirs", "mine")
	f.imported(tree)
	f.git("reset", "-q", "--hard", "HEAD~1")
	f.commit(f.dir, "file", "ours", "main moves")
	_, err := tree.Rebase(t.Context(), f.base())
	_, command, _ := strings.Cut(fmt.Sprint(err), "by hand: ")
	if !errors.Is(err, ErrConflict) || !strings.Contains(command, " rebase --onto main "+tree.Spec().Base.Commit[:7]) {
		t.Errorf("rebased: %v", err)
	}
	f.remove(tree)
}

// No rebase can leave out a commit below a merge.
func TestRebaseOfAMergeRefusesALostCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.commit(f.dir, "unwanted", "x", "unwanted")
	tree := f.add("k", "r")
	f.sh(tree.Dir(), "sh", "-c", sideMerge)
	f.imported(tree)
	f.git("reset", "-q", "--hard", "HEAD~1")
	_, err := tree.Rebase(t.Context(), f.base())
	how, _ := errors.AsType[*merge.ConflictError](err)
	if !errors.Is(err, ErrConflict) || how == nil || !how.Hopeless || !strings.HasSuffix(err.Error(), "git -C "+f.dir+" "+how.Commands[0]) {
		t.Fatalf("rebased: %v", err)
	}
	f.remove(tree)
	f.sh(f.dir, "sh", "-c", "git "+how.Commands[0])
	if f.git("log", "--oneline", "ralph/k", "--", "unwanted") != "" {
		t.Error("the command brings back what the base has lost")
	}
}

// A commit that the base has lost does not matter to a branch that was not built on it.
func TestRebaseOfAMergeThatLacksALostCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.branchWith("k", "earlier", "x")
	f.commit(f.dir, "unwanted", "x", "unwanted")
	tree := f.add("k", "r")
	f.sh(tree.Dir(), "sh", "-c", sideMerge)
	f.imported(tree)
	f.git("reset", "-q", "--hard", "HEAD~1")
	onto := f.commit(f.dir, "c", "x", "main moves")
	if tip, err := tree.Rebase(t.Context(), f.base()); err != nil || f.git("merge-base", tip, "main") != onto {
		t.Errorf("rebased to %s: %v", tip, err)
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
	merged := f.imported(tree).Tip
	// A base that the merge already contains needs no work.
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

func TestRebase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	f.git("config", "rebase.autoSquash", "true")
	tree := f.add("k", "r")
	old := f.commit(tree.Dir(), "b", "x", "fixup! work")
	f.imported(tree)
	onto := f.commit(f.dir, "c", "x", "main moves")
	tip, err := tree.Rebase(ctx, f.base())
	if err != nil {
		t.Fatal(err)
	}
	got := f.imported(tree)
	if got.Tip != tip || len(got.Commits) != 1 || f.git("rev-parse", tip+"^") != onto || f.ref("refs/heads/ralph/k") != tip {
		t.Errorf("imported %+v", got)
	}
	if f.ref("refs/ralph/old/k/"+old[:12]) != old {
		t.Error("the old tip is lost")
	}
	f.commit(f.dir, "b", "conflict", "main conflicts")
	_, err = tree.Rebase(ctx, f.base())
	if !errors.Is(err, ErrConflict) || !strings.HasSuffix(err.Error(), "git -C "+f.dir+" rebase main ralph/k") {
		t.Fatalf("conflict: %v", err)
	}
	if again := f.imported(tree); again.Tip != tip || len(again.Commits) != 1 || again.New != 0 {
		t.Errorf("after the conflict: %+v", again)
	}
	if s := f.sh(tree.Dir(), "git", "status", "--porcelain", "--branch"); s != "## ralph/k" {
		t.Errorf("after the conflict: %s", s)
	}
	f.remove(tree)
}

// Uncommitted changes are saved and are not in the way, whether or not the agent has merged.
func TestRebaseOfADirtyTree(t *testing.T) {
	t.Parallel()
	for _, merged := range []bool{false, true} {
		t.Run(fmt.Sprintf("merged %t", merged), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree := f.add("k", "r")
			sh := func(line string) string { return f.sh(tree.Dir(), "sh", "-ec", line) }
			sh("echo work > b; git add b; git commit -qm work")
			if merged {
				sh("git switch -qc side HEAD~1; echo s > s; git add s; git commit -qm s; git switch -q -; git merge -q --no-edit side")
			}
			sh("echo more >> b; echo staged > a.txt; git add a.txt; echo new > untracked; echo mine > c")
			f.commit(f.dir, "c", "x", "main moves")
			tip, err := tree.Rebase(t.Context(), f.base())
			if err != nil {
				t.Fatal(err)
			}
			if out := sh("git status --porcelain --branch; cat b a.txt c"); out != "## ralph/k\n?? untracked\nwork\none\nx" {
				t.Errorf("the worktree: %s", out)
			}
			saved := f.ref("refs/ralph/wip/k")
			if got := f.show(saved, "b") + f.show(saved, "a.txt") + f.show(saved, "c") + f.show(saved, "untracked"); got != "work\nmorestagedminenew" {
				t.Errorf("saved: %s", got)
			}
			if got := f.imported(tree); got.Tip != tip || got.New != 0 || f.git("rev-parse", got.WIP+"^2") != saved {
				t.Errorf("imported %+v", got)
			}
			f.commit(f.dir, "b", "conflict", "main conflicts")
			sh("echo again >> b")
			if _, err := tree.Rebase(t.Context(), f.base()); !errors.Is(err, ErrConflict) {
				t.Errorf("conflict: %v", err)
			}
			if out := sh("git status --porcelain --branch; git rev-parse HEAD"); out != "## ralph/k\n M b\n?? untracked\n"+tip {
				t.Errorf("after the conflict: %s", out)
			}
			if got := f.show("refs/ralph/wip/k", "b"); got != "work\nagain" {
				t.Errorf("saved before the conflict: %s", got)
			}
			f.imported(tree)
			f.remove(tree)
		})
	}
}

// TestReplay compares the replay of commits with git's own rebase: same messages, authors, files and empty commits.
func TestReplay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r")
	sh := func(line string) { f.sh(tree.Dir(), "sh", "-ec", line) }
	sh("mkdir d; mv a.txt d/a; git add -A; GIT_AUTHOR_NAME='Jo <x' git commit -qm 'rename' --date=2001-01-01T00:00:00Z")
	sh("git -c i18n.commitEncoding=ISO-8859-1 commit -q --allow-empty -m \"$(printf 'f\\374r')\"")
	sh("echo same > same; git add same; git commit -qm 'came by another way'; rm .gitignore; ln -s d l; git add -A; git commit -qm 'link, and a removal'")
	tip := f.imported(tree).Tip
	f.commit(f.dir, "same", "same\n", "the other way")
	f.commit(f.dir, "a.txt", "one\ntwo\n", "change of what is renamed")
	got, err := tree.Rebase(t.Context(), f.base())
	if err != nil {
		t.Fatal(err)
	}
	f.git("switch", "-q", "--detach", tip)
	f.git("-c", "rebase.empty=drop", "rebase", "-q", "--empty=drop", "main")
	format := "--format=%T %an %ae %at %s"
	if want := f.git("log", format, "main..HEAD"); f.git("log", format, "main.."+got) != want {
		t.Errorf("replayed\n%s\nwant\n%s", f.git("log", format, "main.."+got), want)
	}
}

// interrupted returns a tree whose rebase onto main was recorded before any ref has moved, and the tip before the rebase.
func (f *fixture) interrupted() (tree *Tree, tip string, next record.Rebase) {
	f.Helper()
	tree = f.add("k", "r")
	tip = f.commit(tree.Dir(), "b", "x", "work")
	f.imported(tree)
	f.commit(f.dir, "c", "x", "main moves")
	next, err := tree.replayOnto(f.Context(), f.base(), tip, nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := tree.updateRecord(func(rec *record.Record) { rec.PendingRebase, rec.Replaced = &next, tip }); err != nil {
		f.Fatal(err)
	}
	return tree, tip, next
}

// moveRefs moves the refs of the key k, as a rebase does.
func (f *fixture) moveRefs(to string) {
	f.git("update-ref", "refs/heads/ralph/k", to)
	f.git("update-ref", "refs/ralph/work/k", to)
}

// TestRebaseCrash stops a rebase before and after its refs have moved, like a power loss.
func TestRebaseCrash(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]bool{"before the refs move": false, "before the files follow": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			wantBase := f.base()
			_, want, next := f.interrupted()
			if moved {
				want, wantBase = next.Tip, f.base()
				f.moveRefs(next.Tip)
			}
			trees, err := f.open(Options{}).Trees(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := f.imported(trees[0]); got.Tip != want || got.WIP != "" || trees[0].Spec().Base != wantBase {
				t.Errorf("imported %+v onto %+v", got, trees[0].Spec().Base)
			}
			f.remove(trees[0])
			f.clean()
		})
	}
}

// TestRebaseCrashKeepsEdits edits a file after a crash, before the files were updated or before ralph has recorded that.
func TestRebaseCrashKeepsEdits(t *testing.T) {
	t.Parallel()
	for name, followed := range map[string]bool{"the files have not followed": false, "the files have followed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree, tip, next := f.interrupted()
			f.moveRefs(next.Tip)
			if followed {
				f.sh(tree.Dir(), "git", "reset", "-q", "--hard")
			}
			f.write(tree.Dir(), "b", "edited")
			f.write(tree.Dir(), "new", "untracked")
			trees, err := f.open(Options{}).Trees(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := f.imported(trees[0])
			if got.Tip != next.Tip || f.read(tree.Dir(), "c") != "x" {
				t.Errorf("imported %+v", got)
			}
			found := false
			for _, commit := range strings.Fields(f.git("rev-list", "refs/ralph/wip/k", "--not", next.Tip, tip)) {
				found = found || f.show(commit, "b") == "edited" && f.show(commit, "new") == "untracked"
			}
			if !found {
				t.Error("the edit is lost")
			}
			if on := f.read(tree.Dir(), "b"); (on == "edited") != followed {
				t.Errorf("the file: %s", on)
			}
			f.remove(trees[0])
			f.clean()
		})
	}
}
