package span

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Merged reports, for commits that base does not contain, whether base has all their changes, for example because somebody
// has squashed or rebased them. It reports false for a tip without any changes: then nothing can have been merged.
func Merged(ctx context.Context, g git.Runner, base string, tips []string) (map[string]bool, error) {
	merged, err := redundant(ctx, g, base, tips)
	if err != nil {
		return nil, err
	}
	for tip, is := range merged {
		if !is {
			continue
		}
		from, err := g.Output(ctx, "merge-base", base, tip)
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

// Absorbed reports, for commits with full IDs, whether ours has all their changes, so that merging one would change
// nothing. It reports false for missing commits and for those that cannot be merged, for example because of an unrelated
// history. A commit that ours contains costs no extra process.
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

// Missing reports whether a commit exists here and has changes that ours lacks.
func Missing(ctx context.Context, g git.Runner, ours, theirs string) (bool, error) {
	here, err := g.IDs(ctx, []string{theirs})
	if err != nil || here[0] == "" {
		return false, err
	}
	absorbed, err := Absorbed(ctx, g, ours, []string{theirs})
	return err == nil && !absorbed[theirs], err
}

// redundant is like Absorbed, for existing commits that ours does not contain.
func redundant(ctx context.Context, g git.Runner, ours string, theirs []string) (map[string]bool, error) {
	if len(theirs) == 0 {
		return map[string]bool{}, nil
	}
	config, err := g.Config(ctx)
	if err != nil {
		return nil, err
	}
	g = g.With(config.WithoutPrograms()...) // a configured merge driver could drop the changes
	merged := map[string]string{}
	for todo := append([]string{ours}, theirs...); len(todo) > 0; {
		trees, err := mergedTrees(ctx, g, ours, todo)
		if err != nil {
			return nil, err
		}
		for i, tree := range trees {
			merged[todo[i]] = tree
		}
		todo = todo[min(len(trees)+1, len(todo)):] // git stops at a commit that cannot be merged
	}
	none := map[string]bool{}
	for _, id := range theirs {
		none[id] = merged[id] != "" && merged[id] == merged[ours] // compare trees, because a diff may leave out submodules
	}
	return none, nil
}

// mergedTrees merges each commit with ours in one process, up to the first that cannot be merged. The tree is empty if
// files conflict.
func mergedTrees(ctx context.Context, g git.Runner, ours string, theirs []string) ([]string, error) {
	var pairs strings.Builder
	for _, id := range theirs {
		fmt.Fprintf(&pairs, "%s %s\n", ours, id)
	}
	out, err := g.WithMemory(git.AgentMemory).Run(ctx, pairs.String(), "merge-tree", "--stdin", "--name-only", "--no-messages")
	if err != nil && !git.Failed(err) {
		return nil, err
	}
	// For each: whether it is clean, its tree, the names of conflicting files, and an empty field.
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
