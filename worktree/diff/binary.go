package diff

import (
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Binary lists the paths whose changes git does not show, because it takes a content for data. revisions are those of git diff.
func Binary(ctx context.Context, g git.Runner, revisions ...string) (paths []string, err error) {
	args := append([]string{"diff", "--numstat", "-z", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--end-of-options"}, revisions...)
	out, err := g.WithMemory(git.AgentMemory).Output(ctx, append(args, "--")...)
	if err != nil {
		return nil, fmt.Errorf("list binary files: %w", err)
	}
	for line := range strings.SplitSeq(out, "\x00") {
		if path, ok := strings.CutPrefix(line, "-\t-\t"); ok {
			paths = append(paths, path)
		}
	}
	return paths, nil
}
