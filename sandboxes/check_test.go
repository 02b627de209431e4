package sandboxes_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// A negative limit is a mistake, and must not become a default.
func TestNegativeLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, l := range map[string]sandboxes.Limits{"memory": {Memory: -1}, "CPUs": {CPUs: -0.5}, "PIDs": {PIDs: -1}, "disk": {Disk: -1}} {
		err := sandboxes.Spec{Run: "r", Worktree: dir, Limits: l}.Check()
		if want := "the limit of " + name + " is negative"; err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
