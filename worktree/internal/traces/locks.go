package traces

import (
	"context"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Unlock removes locks from the git directory of a run's linked worktree, if it has one. They are from a git that was
// killed with its agent or with the checks, and the next git would fail because of them. They stay while a process of the
// run is alive or may be.
func Unlock(ctx context.Context, gitDir, run string) {
	for _, name := range []string{"index.lock", "HEAD.lock"} {
		path := filepath.Join(gitDir, name)
		if info, err := os.Lstat(path); gitDir == "" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		if pids, err := proc.Parts(ctx, run); err != nil || len(pids) > 0 {
			return
		}
		_ = os.Remove(path) // whoever needs the lock reports that it still exists
	}
}
