package leftover

import (
	"context"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Unlock removes from the git directory of a run's linked worktree, if it has one, the locks of a git that was killed with its agent
// or the checks: the next agent's would fail, and so would a person's. While a process of the run is alive, or where that cannot be
// told, they stay.
func Unlock(ctx context.Context, gitDir, run string) {
	for _, name := range []string{"index.lock", "HEAD.lock"} {
		path := filepath.Join(gitDir, name)
		if info, err := os.Lstat(path); gitDir == "" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		if pids, err := proc.Parts(ctx, run); err != nil || len(pids) > 0 {
			return
		}
		_ = os.Remove(path) // who needs it says that it is there
	}
}
