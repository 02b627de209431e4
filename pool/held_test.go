package pool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// rebase begins a rebase of the last two commits in the user's checkout, which stops at the first.
func (f *fixture) rebase() {
	f.git(f.repo, "-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~2")
}

// While the user rebases the base branch, a merge waits, and one that a person asks for is refused.
func TestMergeDuringARebase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Publish, f.Config.Run.Base = journal.PublishMerge, "main"
	f.commit2()
	f.issue("a")
	f.onStage(journal.StagePublish, func(journal.Record) { f.rebase() })
	at := f.git(f.repo, "rev-parse", "main")
	r, err := f.pool().Work(t.Context(), "a")
	const why = "a rebase of branch main is in progress in "
	if r.Deferred == nil || !strings.HasPrefix(err.Error(), "stage publish is left to the next sweep: ") || !strings.Contains(err.Error(), why) {
		t.Errorf("%+v, %v", r, err)
	}
	f.onStage("", nil)
	if now := f.git(f.repo, "rev-parse", "main"); now != at || strings.Contains(f.text("a"), "state: closed") {
		t.Errorf("main was %s and is %s; the issue:\n%s", at, now, f.text("a"))
	}
	f.git(f.repo, "rebase", "--abort")
	if r := f.sweep(t.Context()); len(r.Runs) != 1 || !strings.Contains(f.text("a"), "state: closed") || !f.exists("a.txt") {
		t.Errorf("after the rebase: %+v; the issue:\n%s", r, f.text("a"))
	}
	f.clean()

	f.issue("b")
	f.Config.Run.Publish = journal.PublishBranch
	f.one("b")
	before := f.text("b")
	f.rebase()
	if _, err := f.pool().Merge(t.Context(), "b"); !errors.Is(err, worktree.ErrUnfinished) || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if len(f.runs("b")) != 1 || f.text("b") != before {
		t.Errorf("%d runs; the issue says:\n%s", len(f.runs("b")), f.text("b"))
	}
	f.git(f.repo, "rebase", "--abort")
	if r, err := f.pool().Merge(t.Context(), "b"); err != nil || !r.Closed {
		t.Errorf("%+v, %v", r, err)
	}
	f.clean()
}

// commit2 makes two commits of the user's.
func (f *fixture) commit2() {
	for _, text := range []string{"one\n", "two\n"} {
		f.write("mine", text)
		f.commit("mine " + text)
	}
}

// A branch that the user checks out during the run stays where it is, and the run waits until it is free. Nothing moves under
// the user's index and files.
func TestBranchIsCheckedOutDuringTheRun(t *testing.T) {
	t.Parallel()
	for _, publish := range []journal.Publish{journal.PublishBranch, journal.PublishMerge, journal.PublishNone} {
		f := newFixture(t, "")
		f.Config = f.config(`env -u GIT_DIR -u GIT_WORK_TREE git -C '` + f.repo + `' switch -q ralph/a; ` + commits)
		f.Config.Run.Sandboxes, f.Config.Run.Base, f.Config.Run.Publish = newBindingProvider(nil), "main", publish
		f.issue("a")
		at := f.git(f.repo, "rev-parse", "main")
		r, err := f.pool().Work(t.Context(), "a")
		if r.Deferred == nil || !strings.Contains(err.Error(), "branch ralph/a is checked out in "+f.repo+"; free it with: git ") {
			t.Errorf("%s: %+v, %v", publish, r, err)
		}
		if now := f.git(f.repo, "rev-parse", "HEAD"); now != at || f.git(f.repo, "status", "--porcelain") != "" {
			t.Errorf("%s: HEAD was %s and is %s", publish, at, now)
		}
		if work := f.git(f.repo, "rev-parse", "refs/ralph/work/a"); work != r.Record.Tip || work == at {
			t.Errorf("%s: the commits are not kept: %s", publish, work)
		}
		f.git(f.repo, "switch", "-q", "main")
		if r := f.one(); r.Verdict.Outcome != journal.Succeeded || f.git(f.repo, "rev-parse", "ralph/a") != r.Tip {
			t.Errorf("%s: %+v", publish, r.Verdict)
		}
		f.clean()
	}
}

// An issue whose branch the user has checked out is skipped: the sweep names the checkout, and counts no failure.
func TestBranchIsCheckedOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Base = "main"
	f.issue("a")
	f.one()
	if err := f.pool().Requeue(t.Context(), "a", "me", tracker.Retry, ""); err != nil {
		t.Fatal(err)
	}
	f.git(f.repo, "switch", "-q", "ralph/a")
	for range 3 {
		s := f.sweep(t.Context())
		if len(s.Runs) != 0 || len(s.Skipped) != 1 || s.Skipped[0].Skip.Code != journal.SkipHeld || !strings.Contains(s.Skipped[0].Skip.Detail, "switch --detach") {
			t.Fatalf("%d runs; skipped %+v", len(s.Runs), s.Skipped)
		}
	}
	r, err := f.pool().Work(t.Context(), "a")
	if err != nil || r.Skip == nil || r.Skip.Code != journal.SkipHeld || len(f.runs("a")) != 1 {
		t.Errorf("named: %+v, %v", r.Skip, err)
	}
	if _, err := f.pool().Merge(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "is checked out in ") || len(f.runs("a")) != 1 {
		t.Errorf("merge: %v", err)
	}
	f.git(f.repo, "switch", "-q", "main")
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded || r.Facts.Failures != 0 {
		t.Errorf("%+v", r)
	}
	f.clean()
}
