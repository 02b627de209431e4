package e2e

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// ralph dies after its work, before it has reported everything. Another clone without any record of the run completes the
// report, once, and does not work the issue again. The first clone has nothing to add.
func TestAnotherCloneTellsTheRest(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, repository) forge{"github": onGitHub, "gitlab": onGitLab} {
		for _, step := range []journal.Stage{journal.StageLabel, journal.StageRelease} {
			if !tested(name == "github", step == journal.StageLabel) {
				continue
			}
			t.Run(name+" "+string(step), func(t *testing.T) {
				t.Parallel()
				f := newFaultScene(t, open)
				other := faultScene{f.scene, f.forge, repository(filepath.Join(t.TempDir(), "other")), f.key}
				clone(t, f.forge, other.clone)
				other.forge.env = append(slices.Clone(f.forge.env), "XDG_STATE_HOME="+t.TempDir()) // like another host
				env := append(slices.Clone(f.forge.env), "RALPH_TEST_CRASH_AT="+string(step))
				if got := f.start(t, f.clone, env, append([]string{"work"}, f.flags...)...).end(t); got != -int(syscall.SIGKILL) {
					t.Fatalf("ralph was to kill itself at step %s, and ended with %d", step, got)
				}
				for _, c := range []faultScene{other, f} {
					if c.work(t) {
						t.Errorf("a sweep after it has not ended well")
					}
				}
				if got := f.labels(f.key); !slices.Equal(got, []string{"in-review"}) {
					t.Errorf("labels %q, want in-review", got)
				}
				reportedOnce(t, f.report(f.key))
				if n := f.starts(t)[f.key]; n != 1 {
					t.Errorf("the agent was started %d times", n)
				}
				f.clean(t, f.clone, other.clone)
			})
		}
	}
}
