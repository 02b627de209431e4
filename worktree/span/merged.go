package span

import (
	"context"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Merged reports of commits that base does not contain whether it has what they change all the same: somebody has squashed
// or rebased them. Of commits that change nothing in all, nothing can have been merged.
func Merged(ctx context.Context, g git.Runner, base string, tips []string) (map[string]bool, error) {
	if len(tips) == 0 {
		return nil, nil
	}
	merged, err := g.Absorbed(ctx, base, tips)
	if err != nil {
		return nil, err
	}
	for tip, is := range merged {
		if !is {
			continue
		}
		from, err := g.Out(ctx, "merge-base", base, tip)
		if err != nil {
			return nil, err
		}
		trees, err := g.IDs(ctx, []string{from + "^{tree}", tip + "^{tree}"})
		if err != nil {
			return nil, err
		}
		merged[tip] = trees[0] != trees[1]
	}
	return merged, nil
}
