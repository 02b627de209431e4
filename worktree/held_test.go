package worktree

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// operations are what a user does with a branch, in a checkout of it with two commits of its own, and how it ends.
var operations = map[string]struct{ begin, end, op string }{
	"rebase":            {`GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -q -i HEAD~2`, "git rebase --abort", "rebase"},
	"rebase of patches": {`git rebase -q --apply --onto HEAD~2 HEAD~1`, "git rebase --abort", "rebase"},
	"rebase of a stack": {`git switch -qc top; GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -q -i --update-refs HEAD~2`, "git rebase --abort", "rebase"},
	"bisection":         {`git bisect start HEAD HEAD~2`, "git bisect reset", "bisect"},
}

// A base branch is not moved during a rebase or bisection of it, in whatever checkout: the end would put it back.
func TestMergeDuringARebase(t *testing.T) {
	t.Parallel()
	for name, c := range operations {
		for _, where := range []string{"main checkout", "linked", "linked by relative paths"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.commit(f.dir, "b", "x", "mine 1")
				f.commit(f.dir, "b", "y", "mine 2")
				tip, base, dir := f.branchWith("1", "one", "1"), f.base(), f.dir
				if where != "main checkout" {
					dir = filepath.Join(filepath.Dir(f.dir), "side")
					f.git("switch", "-q", "-c", "other")
					f.git("worktree", "add", "-q", dir, "main")
				}
				if where == "linked by relative paths" { // as git writes them since 2.48, with worktree.useRelativePaths
					f.write(f.dir, ".git/worktrees/side/gitdir", "../../../../side/.git\n")
					f.write(dir, ".git", "gitdir: ../project/.git/worktrees/side\n")
				}
				_, _ = f.try(dir, "sh", "-c", c.begin)
				if _, err := f.try(dir, "git", "symbolic-ref", "-q", "HEAD"); err == nil {
					t.Fatal("the operation has not begun")
				}
				for range 2 {
					_, err := f.repo.Merge(t.Context(), base, tip, "m")
					want := "a " + c.op + " of branch main is in progress in " + dir + "; end it with: git " + c.op
					if !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
						t.Errorf("%v, want %s", err, want)
					}
				}
				if at := f.ref("refs/heads/main"); at != base.Commit {
					t.Errorf("main has moved from %s to %s", base.Commit, at)
				}
				f.sh(dir, "sh", "-c", c.end)
				if _, err := f.repo.Merge(t.Context(), base, tip, "m"); err != nil || f.ref("refs/heads/main") != tip {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
	}
}

// An import leaves a branch that the user has checked out during the run: otherwise the user's next commit would revert the
// work. The branch moves once it is free, at the end of the run or in the next one.
func TestImportIntoABranchThatIsCheckedOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ begin, end, state string }{
		"switch":          {"git switch -q ralph/1", "git switch -q main", "is checked out in "},
		"linked worktree": {"git worktree add -q ../side ralph/1", "git worktree remove ../side", "is checked out in "},
		"rebase":          {"git worktree add -q ../side ralph/1; cd ../side; git -c sequence.editor='sed -i 1s/pick/edit/' rebase -q -i main", "git worktree remove ../side", "is in progress in "},
	} {
		for _, nextRun := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				before := f.branchWith("1", "one", "1")
				s := f.spec("1", "second")
				s.Private = true
				tree := f.addSpec(s)
				f.sh(f.dir, "sh", "-ec", c.begin)
				for i, text := range []string{"x", "y"} {
					f.agent(tree, "echo "+text+" >two; git add two; git commit -qm two")
					got := f.imported(tree)
					if len(got.Commits) != i+2 || f.ref("refs/ralph/work/1") != got.Tip || f.ref("refs/heads/ralph/1") != before {
						t.Errorf("work %s, branch %s; imported %+v", f.ref("refs/ralph/work/1"), f.ref("refs/heads/ralph/1"), got)
					}
				}
				tip := f.ref("refs/ralph/work/1")
				if err := tree.MoveBranch(t.Context()); err == nil || !strings.Contains(err.Error(), c.state) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
				if _, err := tree.Rebase(t.Context(), f.base()); err == nil || !strings.Contains(err.Error(), c.state) {
					t.Errorf("rebase: %v", err)
				}
				if nextRun {
					f.remove(tree)
					if _, err := f.repo.Add(t.Context(), f.spec("1", "third")); err == nil || !strings.Contains(err.Error(), c.state) {
						t.Errorf("the next run: %v", err)
					}
				}
				if err := f.repo.Drop(t.Context(), "1", tip); err == nil {
					t.Error("dropped")
				}
				if all, err := f.repo.Branches(t.Context(), f.base()); err != nil || len(all) != 1 || all[0].Tip != tip || all[0].Ahead != 3 {
					t.Errorf("listed %+v, %v", all, err)
				}
				f.sh(f.dir, "sh", "-ec", c.end)
				if nextRun {
					if next := f.add("1", "fourth"); next.Start() != tip {
						t.Errorf("the next run starts at %s, want %s", next.Start(), tip)
					}
				} else if err := tree.MoveBranch(t.Context()); err != nil {
					t.Error(err)
				}
				if at, old := f.ref("refs/heads/ralph/1"), f.ref("refs/ralph/old"); at != tip || old != "" {
					t.Errorf("branch %s, want %s; old tips %q", at, tip, old)
				}
			})
		}
	}
}

// A branch that the user has moved stays as it is, also when it is free again during the run.
func TestLeaveABranchThatTheUserHasMoved(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprintf("work before: %t", early), func(t *testing.T) {
			t.Parallel()
			leaveMovedBranch(newFixture(t), early)
		})
	}
}

func leaveMovedBranch(f *fixture, early bool) {
	f.branchWith("1", "one", "1")
	s := f.spec("1", "second")
	s.Private = true
	tree := f.addSpec(s)
	f.git("switch", "-q", "ralph/1")
	if early {
		f.agent(tree, "echo x >one; git add one; git commit -qm one")
		f.imported(tree)
	}
	mine := f.commit(f.dir, "mine", "x", "mine")
	f.agent(tree, "echo x >two; git add two; git commit -qm two")
	f.imported(tree)
	f.git("switch", "-q", "main")
	f.agent(tree, "echo x >three; git add three; git commit -qm three")
	got := f.imported(tree)
	if err := tree.MoveBranch(f.Context()); !errors.Is(err, ErrMoved) || f.ref("refs/heads/ralph/1") != mine || f.ref("refs/ralph/work/1") != got.Tip {
		f.Errorf("%v", err)
	}
	f.remove(tree)
	if next := f.add("1", "third"); next.Start() != mine || f.ref("refs/ralph/old/1/"+got.Tip[:12]) != got.Tip {
		f.Errorf("the next run starts at %s, want %s", next.Start(), mine)
	}
}

// A rebase or bisection that begins while ralph moves the branch keeps the branch, which moves once the operation has ended.
func TestOperationThatBeginsDuringTheMove(t *testing.T) {
	t.Parallel()
	for name, c := range operations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.branchWith("1", "b", "1")
			before := f.branchWith("1", "b", "2")
			s := f.spec("1", "third")
			s.Private = true
			tree := f.addSpec(s)
			guard, dir := tree.guard(), filepath.Join(filepath.Dir(f.dir), "side")
			if err := guard.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.git("worktree", "add", "-q", dir, "ralph/1")
			_, _ = f.try(dir, "sh", "-c", c.begin)
			tip := f.git("commit-tree", "-p", before, "-m", "three", before+"^{tree}")
			if err := guard.MoveRefs(t.Context(), git.Edit{Ref: guard.Ref, New: tip, Old: before}, git.Edit{Ref: "refs/ralph/work/1", New: tip, Old: before}); err != nil {
				t.Fatal(err)
			}
			if at, work := f.ref(guard.Ref), f.ref("refs/ralph/work/1"); at != before || work != tip {
				t.Errorf("branch %s, work %s", at, work)
			}
			f.sh(dir, "sh", "-c", c.end)
			f.git("worktree", "remove", "--force", dir)
			if err := tree.MoveBranch(t.Context()); err != nil || f.ref(guard.Ref) != tip {
				t.Errorf("branch %s, want %s: %v", f.ref(guard.Ref), tip, err)
			}
			if old := f.ref("refs/ralph/old"); old != "" {
				t.Errorf("old tips %q", old)
			}
		})
	}
}
