package pool_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A branch without common history with the base can be merged by nobody: it is no success.
func TestUnrelatedHistory(t *testing.T) {
	t.Parallel()
	for _, publish := range []journal.Publish{journal.PublishBranch, journal.PublishMerge} {
		t.Run(string(publish), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; git checkout -q --orphan other; echo work > work; git add -A; git commit -qm work`+done)
			f.issue("a")
			f.Config.Run.Publish = publish
			r := f.one()
			if r.Verdict.Outcome != journal.Failed || r.Verdict.Reason.Code != journal.ReasonConflict || !r.Verdict.Counted {
				t.Errorf("%+v", r.Verdict)
			}
			if text := f.text("a"); !strings.Contains(text, "no history in common with main") {
				t.Errorf("report:\n%s", text)
			}
			f.clean()
		})
	}
}
