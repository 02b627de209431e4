package pool_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A branch without common history with the base cannot be merged, so it is no success. That is the reason, not the limit at which
// the agent has to stop, whether it has made the branch or amended a commit that was there.
func TestUnrelatedHistory(t *testing.T) {
	t.Parallel()
	for agent, exists := range map[string]bool{
		`git checkout -q --orphan other; echo work > work; git add -A; git commit -qm work`: false,
		`echo work > work; git add -A; git commit -q --amend -m work`:                       true,
	} {
		for _, publish := range []journal.Publish{journal.PublishBranch, journal.PublishMerge} {
			t.Run(string(publish), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, `cat >/dev/null; `+agent+done)
				if exists {
					f.git(f.repo, "switch", "-q", "--orphan", "ralph/a")
					f.write("before", "x\n")
					f.commit("before")
					f.git(f.repo, "switch", "-q", "main")
				}
				f.issue("a")
				f.Config.Run.Publish = publish
				r := f.one()
				if r.Verdict.Outcome != journal.Failed || r.Verdict.Reason.Code != journal.ReasonConflict || !r.Verdict.Counted {
					t.Errorf("%+v", r.Verdict)
				}
				if text := f.text("a"); !strings.Contains(text, "`the commits have no history in common with main`") {
					t.Errorf("report:\n%s", text)
				}
				f.clean()
			})
		}
	}
}

// The agent is told while it can still base its work on the base.
func TestUnrelatedHistoryIsFeedback(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `if grep -q "no history in common with main"; then git checkout -q -B ralph/a main; fi
if ! test -e .git/once; then touch .git/once; git checkout -q --orphan other; fi; echo work > work; git add -A; git commit -qm work`+done)
	f.issue("a")
	r := f.one()
	if r.Verdict.Outcome != journal.Succeeded || len(r.Facts.Iterations) != 2 {
		t.Errorf("%d iterations, %+v", len(r.Facts.Iterations), r.Verdict)
	}
}

// A branch is not merged either if its base was replaced by an unrelated history since.
func TestMergeOfUnrelatedHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.one()
	f.git(f.repo, "switch", "-q", "--orphan", "anew")
	f.write("new", "x\n")
	f.commit("anew")
	f.git(f.repo, "branch", "-qM", "anew", "main")
	got, err := f.pool().Merge(t.Context(), "a")
	if err != nil || got.Record.Run.ID == "" {
		t.Fatalf("%+v %v", got, err)
	}
	if r := got.Record; r.Verdict.Reason.Code != journal.ReasonConflict || !strings.Contains(r.Verdict.Reason.Detail, "no history in common with main") {
		t.Errorf("%+v", r.Verdict)
	}
}
