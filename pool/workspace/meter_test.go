package workspace

import (
	"testing"

	"github.com/ralph-pool/ralph/worktree"
)

// The usage of a run's checks counts for the run, as long as it is in progress.
func TestMeterIsShared(t *testing.T) {
	t.Parallel()
	c := &Config{Repo: &worktree.Repo{}}
	run, other := c.New("r1", nil, nil, nil), c.New("r2", nil, nil, nil)
	part := func() *Workspace {
		w := c.New("r1-verify", (*worktree.Tree)(nil), nil, nil)
		w.shareMeter("r1")
		defer w.Forget()
		return w
	}
	if part().Meter != run.Meter || part().Meter == other.Meter {
		t.Error("the checks have a meter of their own, or another run's")
	}
	run.Forget()
	if part().Meter == run.Meter {
		t.Error("the meter of a run that is over is used")
	}
	other.Forget()
	if len(c.meters) != 0 {
		t.Errorf("%d meters are left", len(c.meters))
	}
}
