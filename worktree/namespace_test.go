package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/leftover"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Two trackers on one repository with equal keys do not see each other's claims, branches and worktrees.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	var repos []*Repo
	for _, namespace := range []string{"", "one", "two"} {
		repos = append(repos, f.open(Options{Namespace: namespace}))
	}
	tips := map[string]bool{}
	for _, r := range repos {
		c, err := r.Claim(ctx, "k", Holder{Owner: "o", Run: "r"}, claimTTL)
		if err != nil {
			t.Fatal(err)
		}
		f.repo = r
		spec := f.spec("k", "r")
		spec.Branch = "" // the namespace's
		tree, err := r.Add(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		spec.Branch = tree.Spec().Branch
		tip := f.commit(tree.Dir(), "mine", spec.Branch, "work on "+spec.Branch)
		if got := f.imported(tree); got.Tip != tip || len(got.Commits) != 1 {
			t.Fatalf("%+v", got)
		}
		tips[tip] = true
		if err := c.Finish(ctx, ClaimRecord{Run: "r", Tip: tip}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range repos {
		states, err := r.Claims(ctx)
		if err != nil || len(states) != 1 || states["k"].Finished == nil {
			t.Fatalf("claims: %+v, %v", states, err)
		}
		tip := states["k"].Finished.Tip
		branches, err := r.Branches(ctx, f.base())
		if err != nil || len(branches) != 1 || branches[0].Tip != tip || branches[0].Name != r.BranchName("k") || !tips[tip] {
			t.Fatalf("branches: %+v, %v; want tip %s", branches, err, tip)
		}
		delete(tips, tip)
		trees, err := r.Trees(ctx)
		if err != nil || len(trees) != 1 || trees[0].Dir() != branches[0].Tree {
			t.Fatalf("trees: %+v, %v", trees, err)
		}
		if err := trees[0].Remove(ctx); err != nil {
			t.Fatal(err)
		}
		if err := r.Drop(ctx, "k", tip); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"work", "claims", "a/b", ".", "a.lock"} {
		if _, err := Open(ctx, f.dir, Options{StateDir: f.state, Namespace: bad}); err == nil {
			t.Errorf("namespace %q is accepted", bad)
		}
	}
}

// A lock file of a killed git on one of ralph's refs blocks neither claims nor imports.
func TestStaleLocksOfRefs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.open(Options{Sleep: func(context.Context, time.Duration) error { return nil }})
	ctx := t.Context()
	var locks []string
	for _, ref := range []string{"refs/ralph/claims/k", "refs/ralph/work/k", "refs/heads/ralph/k", "refs/ralph/wip/k"} {
		lock := filepath.Join(f.dir, ".git", filepath.FromSlash(ref)) + ".lock"
		f.write(filepath.Dir(lock), filepath.Base(lock), "")
		then := time.Now().Add(-time.Minute)
		if err := os.Chtimes(lock, then, then); err != nil {
			t.Fatal(err)
		}
		locks = append(locks, lock)
	}
	if got := f.leftovers(false); len(got) != len(locks) || !slices.Contains(got, string(leftover.Lock)+" "+locks[0]) {
		t.Fatalf("%v", got)
	}
	c, err := f.repo.Claim(ctx, "k", Holder{Owner: "o", Run: "r"}, claimTTL)
	if err != nil {
		t.Fatal(err)
	}
	tree := f.add("k", "r")
	tip := f.commit(tree.Dir(), "mine", "x", "work")
	f.write(tree.Dir(), "draft", "y")
	if got := f.imported(tree); got.Tip != tip || got.WIP == "" || f.ref("refs/ralph/work/k") != tip {
		t.Fatalf("%+v", got)
	}
	f.remove(tree)
	if err := c.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if got := f.leftovers(false); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// An unreadable worktree record hides no other worktree, and blocks only its own key.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"damaged": "{", "empty": "", "newer": `{"version":99}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			ctx := t.Context()
			bad, good, other := f.add("k", "r1"), f.add("k-2", "r2"), f.add("z", "r3")
			f.commit(good.Dir(), "x", "x", "work")
			got := f.imported(good)
			f.remove(good)
			f.write(filepath.Dir(bad.Dir()), filepath.Base(bad.Dir())+record.Suffix, content)
			trees, err := f.repo.Trees(ctx)
			broken, ok := errors.AsType[*record.Errors](err)
			if !ok || len(broken.Records) != 1 || len(trees) != 1 || trees[0].Dir() != other.Dir() {
				t.Fatalf("%v, %v", trees, err)
			}
			if name == "newer" && !errors.Is(broken.Records[bad.Dir()+record.Suffix], ErrVersion) {
				t.Errorf("not told as newer: %v", err)
			}
			if branches, err := f.repo.Branches(ctx, f.base()); len(branches) != 3 || !errors.As(err, &broken) {
				t.Errorf("branches: %+v, %v", branches, err)
			}
			if err := f.repo.Drop(ctx, "k-2", got.Tip); err != nil {
				t.Errorf("drop of another key: %v", err)
			}
			f.add("new", "r4")
			f.git("worktree", "unlock", bad.Dir())
			f.git("worktree", "remove", "--force", bad.Dir())
			if err := f.repo.Drop(ctx, "k", f.base().Commit); !errors.Is(err, ErrUnsaved) {
				t.Errorf("drop of its own key: %v", err)
			}
		})
	}
}
