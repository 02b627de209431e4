package run

import (
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/claim"
)

// Other machines wait a day for commits that exist only on this host.
func TestLeftFor(t *testing.T) {
	t.Parallel()
	r := &Runner{c: Config{ClaimTTL: time.Minute}}
	for stage, want := range map[journal.Stage]time.Duration{
		journal.StageWork: time.Minute, journal.StageVerify: claim.MaxTTL, journal.StagePublish: claim.MaxTTL, journal.StageReport: time.Minute,
	} {
		if got := r.ReservedFor(stage); got != want {
			t.Errorf("stage %s: %s, want %s", stage, got, want)
		}
	}
}
