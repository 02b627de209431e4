package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A rebase replays commits one by one and leaves merge commits out, with whatever only they hold: a conflict that was
// resolved, a file that came in with the merge. So a branch that has one is not replayed: it is merged with the base.

// needsMerge reports a branch with commits that a rebase would leave out.
func (t *Tree) needsMerge(ctx context.Context, onto, tip string) (bool, error) {
	out, err := t.repo.git.out(ctx, "rev-list", "--merges", "--max-count=1", tip, "^"+onto, "--")
	if err != nil {
		return false, fmt.Errorf("look for merges: %w", err)
	}
	return out != "", nil
}

// mergeOnto brings the branch to a merge of it and onto, its files too. Nothing changes where the two conflict.
func (t *Tree) mergeOnto(ctx context.Context, g git, onto Base, tip string) error {
	commit := tip
	inside, err := g.contains(ctx, tip, onto.Commit)
	if err != nil {
		return err
	}
	if !inside {
		if err := t.repo.needGit("2.38", "merging"); err != nil {
			return err
		}
		tree, names, err := g.mergeTree(ctx, onto.Commit, tip)
		if err != nil {
			return err
		}
		if names != "" {
			return fmt.Errorf("%w in %s; to solve it by hand: git -C %s switch %s && git -C %s merge %s", ErrConflict, names,
				quote(t.repo.top), quote(t.Spec().Branch), quote(t.repo.top), quote(onto.Name))
		}
		message := fmt.Sprintf("Merge %s into %s\n", t.Spec().Branch, onto.Name)
		if commit, err = g.commitMerge(ctx, tree, onto.Commit, tip, message); err != nil {
			return err
		}
	}
	if err := t.update(func(rec *record) { rec.Rebasing, rec.Merging = &onto, commit }); err != nil {
		return err
	}
	if commit == tip {
		return nil
	}
	// The branch moves after the files, and half of them is nothing to leave.
	_, err = g.out(context.WithoutCancel(ctx), "merge", "--ff-only", "--quiet", "--no-stat", "--no-autostash",
		"--no-overwrite-ignore", "--no-verify", "--no-verify-signatures", commit)
	if err != nil { // git refuses before it changes anything
		return errors.Join(err, t.update(func(rec *record) { rec.Rebasing, rec.Merging = nil, "" }))
	}
	return nil
}

// finishMerge moves files and branch to a merge that a crash has cut short. All that was uncommitted was saved before.
func (t *Tree) finishMerge(ctx context.Context, g git, commit string) error {
	if inside, err := g.contains(ctx, "HEAD", commit); err != nil || inside {
		return err
	}
	if _, err := g.out(ctx, "reset", "--hard", "--quiet", "--no-recurse-submodules", commit); err != nil {
		return fmt.Errorf("finish the merge: %w", err)
	}
	return nil
}

// mergeTree merges two commits as objects only, or names the files that conflict.
func (g git) mergeTree(ctx context.Context, ours, theirs string) (tree, conflicts string, err error) {
	out, err := g.out(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	tree, names, _ := strings.Cut(out, "\x00")
	if failed, ok := errors.AsType[*GitError](err); ok && failed.ExitCode == 1 {
		return "", printable(strings.ReplaceAll(strings.Trim(names, "\x00"), "\x00", ", ")), nil
	}
	return tree, "", err
}

// commitMerge makes the commit of a merged tree.
func (g git) commitMerge(ctx context.Context, tree, ours, theirs, message string) (string, error) {
	commit, err := g.run(ctx, message, "commit-tree", tree, "-p", ours, "-p", theirs, "-F", "-")
	return strings.TrimSpace(commit), err
}
