package span

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Merged reports of commits that base does not contain whether it has what they change all the same: somebody has squashed
// or rebased them. Of commits that change nothing in all, nothing can have been merged.
func Merged(ctx context.Context, g git.Runner, base string, tips []string) (map[string]bool, error) {
	merged, err := redundant(ctx, g, base, tips)
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

// Absorbed reports of commits, by their full ids, whether ours has what they have changed, whatever commits brought it: merging
// one would change nothing. Commits that cannot be merged, such as those of another history, have not got there, nor have those
// that are not here. One that ours contains costs no process of its own.
func Absorbed(ctx context.Context, g git.Runner, ours string, theirs []string) (map[string]bool, error) {
	out, err := g.Run(ctx, strings.Join(append(slices.Clip(theirs), "^"+ours), "\n")+"\n", "rev-list", "--ignore-missing", "--stdin")
	if err != nil {
		return nil, err
	}
	beyond := map[string]bool{}
	for id := range strings.SplitSeq(out, "\n") {
		beyond[id] = true
	}
	var open, others []string
	for _, id := range theirs {
		if beyond[id] {
			open = append(open, id)
		} else {
			others = append(others, id)
		}
	}
	absorbed, err := redundant(ctx, g, ours, open)
	if err != nil || len(others) == 0 {
		return absorbed, err
	}
	here, err := g.IDs(ctx, others)
	for i, id := range here {
		if id != "" {
			absorbed[others[i]] = true
		}
	}
	return absorbed, err
}

// redundant is like Absorbed, for commits that are here and that ours does not contain.
func redundant(ctx context.Context, g git.Runner, ours string, theirs []string) (map[string]bool, error) {
	if len(theirs) == 0 {
		return map[string]bool{}, nil
	}
	config, err := g.Config(ctx)
	if err != nil {
		return nil, err
	}
	g = g.With(config.WithoutPrograms()...) // a merge driver may drop what they have changed
	merged := map[string]string{}
	for todo := append([]string{ours}, theirs...); len(todo) > 0; {
		trees, err := mergedTrees(ctx, g, ours, todo)
		if err != nil {
			return nil, err
		}
		for i, tree := range trees {
			merged[todo[i]] = tree
		}
		todo = todo[min(len(trees)+1, len(todo)):] // git ends at one that cannot be merged
	}
	none := map[string]bool{}
	for _, id := range theirs {
		none[id] = merged[id] != "" && merged[id] == merged[ours] // a diff may leave out submodules
	}
	return none, nil
}

// mergedTrees merges each commit with ours in one process, until one cannot be merged. The tree is empty where files conflict.
func mergedTrees(ctx context.Context, g git.Runner, ours string, theirs []string) ([]string, error) {
	var pairs strings.Builder
	for _, id := range theirs {
		fmt.Fprintf(&pairs, "%s %s\n", ours, id)
	}
	out, err := g.WithMemory(git.AgentMemory).Run(ctx, pairs.String(), "merge-tree", "--stdin", "--name-only", "--no-messages")
	if err != nil && !git.Failed(err) {
		return nil, err
	}
	// Of each: whether it is clean, its tree, the names of files that conflict, and nothing.
	var trees []string
	for fields := strings.Split(out, "\x00"); len(fields) > 2; {
		end := 2 + slices.Index(fields[2:], "")
		if end < 2 {
			break
		}
		tree := ""
		if fields[0] == "1" {
			tree = fields[1]
		}
		trees, fields = append(trees, tree), fields[end+1:]
	}
	return trees, nil
}
