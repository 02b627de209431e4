package pool_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/pool"
)

// An issue that is removed while it is worked ends its run at once, however the agent fares; the commits are kept.
func TestIssueThatIsRemoved(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"done": done, "failed": "; exit 3", "asks": `; echo "<needs-info>why?</needs-info><promise>COMPLETE</promise>"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work; rm -f "$RALPH_ISSUE_URL"`+end)
			f.issue("a")
			run := f.only(f.sweep(t.Context()))
			if v := run.Verdict; v.Outcome != pool.Superseded || v.Reason != "the issue is gone" || v.Counted || v.Final || run.Ended.IsZero() {
				t.Errorf("%+v", run)
			}
			if got := f.git(f.repo, "log", "--format=%s", "main..ralph/a"); got == "" {
				t.Error("the commits are lost")
			}
			f.clean()
			if s := f.sweep(t.Context()); len(s.Runs)+len(s.Broken)+len(s.Skipped) != 0 {
				t.Errorf("a later sweep: %+v", s)
			}
		})
	}
}

// What was merged by then was merged.
func TestIssueThatIsRemovedAfterTheMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Publish = pool.PublishMerge
	f.onStep = func(e pool.Event) {
		if e.Step == pool.StepReport {
			_ = os.Remove(filepath.Join(f.repo, ".ralph", "backlog", "a.md"))
		}
	}
	if run := f.only(f.sweep(t.Context())); run.Verdict.Outcome != pool.Succeeded || run.Verdict.Published == "" || run.Ended.IsZero() {
		t.Errorf("%+v", run)
	}
	f.clean()
}
