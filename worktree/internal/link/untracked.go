package link

import (
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Untracked lists the untracked files and folders of a checkout, including ignored ones, and the folders of submodules.
func Untracked(ctx context.Context, g git.Runner) ([]string, error) {
	out, err := g.Output(ctx, "ls-files", "-z", "--others", "--directory", "--no-empty-directory")
	if err != nil {
		return nil, fmt.Errorf("list untracked files: %w", err)
	}
	var paths []string
	for path := range strings.SplitSeq(out, "\x00") {
		if path = strings.TrimSuffix(path, "/"); path != "" {
			paths = append(paths, path)
		}
	}
	if out, err = g.Output(ctx, "ls-files", "-z", "--stage"); err != nil {
		return nil, fmt.Errorf("list submodules: %w", err)
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if meta, path, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(meta, "160000 ") {
			paths = append(paths, path)
		}
	}
	return paths, nil
}
