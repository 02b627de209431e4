package pool_test

import (
	"testing"

	"github.com/ralph-pool/ralph/pool"
)

// Who looks at a run while it is on finds the commits of the iterations before.
func TestCommitsAreNotedWhileTheRunIsOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo $RALPH_ITERATION >> work; git add -A; git commit -qm work
test $RALPH_ITERATION = 1 || echo "<promise>COMPLETE</promise>"`)
	f.issue("a")
	seen := []int{}
	f.Config.Observe = func(e pool.Event) {
		if e.Kind != pool.EventIteration {
			return
		}
		open, err := f.Config.Journal.Open(t.Context())
		if err != nil || len(open) != 1 || open[0].Verdict.Outcome != "" {
			t.Errorf("%+v, %v", open, err)
			return
		}
		seen = append(seen, open[0].Verdict.Commits)
	}
	f.only(f.sweep(t.Context()))
	if len(seen) != 2 || seen[0] != 0 || seen[1] != 1 {
		t.Errorf("commits at the start of each iteration: %v", seen)
	}
	f.clean()
}
