package finish

import (
	"context"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	differ "github.com/ralph-pool/ralph/worktree/diff"
)

// warnOfSubmodules names the submodules that the merge of an issue's branch moves, because no diff shows what that changes.
func warnOfSubmodules(ctx context.Context, a *compose.App, p *compose.Parts, key, name string) {
	w, err := look.LeftWork(ctx, p, key)
	if err != nil || w.Ahead == 0 {
		return // the merge says what is missing
	}
	from, err := p.Repo.Spans().Fork(ctx, w.Begin, w.Tip)
	if err != nil {
		return // without a common history nothing is merged
	}
	files, err := differ.Files(ctx, p.Repo.Git(), from, w.Tip)
	if err != nil {
		p.Log.Debug("submodules not looked for", "error", err)
	}
	var moved []string
	for _, f := range files {
		if f.New.Mode == differ.Gitlink {
			moved = append(moved, f.Path)
		}
	}
	if len(moved) > 0 {
		a.UI.Warn(screen.CleanLine(name + ": the merge moves submodules to other commits, whose changes no diff shows: " + strings.Join(moved, ", ")))
	}
}
