package cli

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/pool"
)

// keptWork says what a job or a command has left where, and how to get it. The changes are one commit on what was
// committed last.
func keptWork(commits int, branch, wip string) string {
	var kept []string
	if commits > 0 {
		kept = append(kept, fmt.Sprintf("%s kept on branch %s, get it with: git merge %s", plural(commits, "commit"), branch, branch))
	}
	if wip != "" {
		kept = append(kept, fmt.Sprintf("changes without a commit kept as %s, get them with: git cherry-pick --no-commit --mainline 1 %s",
			shortSHA(wip), shortSHA(wip)))
	}
	return strings.Join(kept, "; ")
}

// sayRecovered says what was taken back of a job that had died.
func (a *app) sayRecovered(r pool.Recovered) {
	a.ui.note("ralph: run %s had died; taken back from %s: %s; %s", r.Run, r.Tree, keptWork(r.New, r.Branch, r.WIP), dropWith(r.Key))
}
