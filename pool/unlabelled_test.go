package pool_test

import (
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// An issue that has lost its pick-up label while it was worked is superseded, also where its commits leave no further than
// to a local branch.
func TestUnlabelledMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work; sed -i s/no-human/other/ "$FILE"`+done)
	f.issue("a")
	f.Config.Run.Env = append(f.Config.Run.Env, "FILE="+f.repo+"/.ralph/backlog/a.md")
	f.Config.Run.Publish = journal.PublishBranch
	if r := f.one(); r.Verdict.Outcome != journal.Superseded || r.Verdict.Reason.Detail != "lacks label no-human" || r.Commits != 1 {
		t.Errorf("%+v, %d commits", r.Verdict, r.Commits)
	}
	f.clean()
}
