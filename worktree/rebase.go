package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Rebase replays the branch onto base, in the worktree; a branch with merge commits is merged with base instead: what
// only they hold cannot be replayed. On ErrConflict everything is as before. The branch and the work ref move; an old
// tip that the new one does not contain is kept under refs/ralph/old. Uncommitted changes of tracked files are saved, as
// HandBack does, and taken out of the worktree, and so are untracked files whose place a file of onto takes; that stays so
// on ErrConflict. Where they cannot be saved nothing is done.
func (t *Tree) Rebase(ctx context.Context, onto Base) (tip string, err error) {
	s := t.Spec()
	unlock, err := t.repo.lock(ctx, s.Key)
	if err != nil {
		return "", fmt.Errorf("rebase %s: %w", s.Branch, err)
	}
	defer unlock()
	tip, err = t.rebase(ctx, onto)
	if err != nil {
		return "", fmt.Errorf("rebase %s onto %s: %w", s.Branch, onto.Name, err)
	}
	return tip, nil
}

func (t *Tree) rebase(ctx context.Context, onto Base) (string, error) {
	if !isObjectName(onto.Commit) {
		return "", fmt.Errorf("%q is not a commit", onto.Commit)
	}
	saved, err := t.handBack(ctx)
	if err != nil {
		return "", err
	}
	if t.midOperation() {
		return "", fmt.Errorf("a rebase or merge is under way in %s; see: git -C %s status", t.Dir(), quote(t.Dir()))
	}
	l, err := t.inspect(ctx)
	if err != nil {
		return "", err
	}
	g, err := t.ownGit(ctx)
	if err != nil {
		return "", err
	}
	if err := t.takeOut(ctx, g, onto, l.changes, saved.WIP); err != nil {
		return "", err
	}
	merges, err := t.needsMerge(ctx, onto.Commit, l.head)
	if err != nil {
		return "", err
	}
	if merges {
		if err := t.mergeOnto(ctx, g, onto, l.head); err != nil {
			return "", err
		}
		got, err := t.handBack(ctx) // which notes the base
		return got.Tip, err
	}
	if err := t.update(func(rec *record) { rec.Rebasing = &onto }); err != nil {
		return "", err
	}
	_, err = g.out(ctx, "rebase", "--quiet", "--no-stat", "--no-verify", "--no-gpg-sign", "--no-fork-point",
		"--no-autostash", "--no-autosquash", "--no-rebase-merges", "--merge", "--end-of-options", onto.Commit)
	if err != nil {
		after := context.WithoutCancel(ctx)
		why := t.explainRebase(after, g, onto, err)
		return "", errors.Join(why, t.undoRebase(after))
	}
	got, err := t.handBack(ctx) // which ends the rebase
	return got.Tip, err
}

// takeOut puts the tracked files back to HEAD, and removes untracked ones that are in the way of onto's. What differs has
// been saved: nothing but that may be taken out.
func (t *Tree) takeOut(ctx context.Context, g git, onto Base, changes []change, saved string) error {
	tracked := slices.ContainsFunc(changes, func(c change) bool { return !c.untracked })
	way, err := g.inTheWay(ctx, onto.Commit, changes)
	if err != nil || !tracked && len(way) == 0 {
		return err
	}
	if saved == "" {
		return fmt.Errorf("%w in %s (%s)", ErrDirty, t.Dir(), printable(changes[0].path))
	}
	if tracked {
		if _, err := g.out(ctx, "reset", "--hard", "--quiet", "--no-recurse-submodules"); err != nil {
			return fmt.Errorf("take the uncommitted changes out, which are saved as %s: %w", short(saved), err)
		}
	}
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	for _, path := range way {
		if err := root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take the uncommitted changes out, which are saved as %s: %w", short(saved), err)
		}
	}
	return nil
}

// inTheWay names the untracked files that have the name of a file in the commit.
func (g git) inTheWay(ctx context.Context, commit string, changes []change) ([]string, error) {
	if !slices.ContainsFunc(changes, func(c change) bool { return c.untracked }) {
		return nil, nil
	}
	out, err := g.out(ctx, "ls-tree", "-r", "-z", "--full-tree", "--name-only", commit)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", short(commit), err)
	}
	there := map[string]bool{}
	for name := range strings.SplitSeq(out, "\x00") {
		there[name] = true
	}
	var way []string
	for _, c := range changes {
		if c.untracked && there[c.path] {
			way = append(way, c.path)
		}
	}
	return way, nil
}

// explainRebase tells a conflict, which git leaves in the index, from all else.
func (t *Tree) explainRebase(ctx context.Context, g git, onto Base, err error) error {
	if _, failed := errors.AsType[*GitError](err); !failed {
		return err
	}
	out, lsErr := g.out(ctx, "diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff", "--no-textconv")
	if lsErr != nil || out == "" {
		return err
	}
	// The worktree may be gone when people read this; the branch stays.
	return fmt.Errorf("%w in %s; to solve it by hand: git -C %s rebase %s %s", ErrConflict,
		printable(strings.ReplaceAll(strings.Trim(out, "\x00"), "\x00", ", ")), quote(t.repo.top), quote(onto.Name), quote(t.Spec().Branch))
}

// undoRebase ends a rebase of ralph's own: one that stands is aborted, one that went through moves the base.
func (t *Tree) undoRebase(ctx context.Context) error {
	onto := t.record().Rebasing
	if onto == nil {
		return nil
	}
	if _, admin := t.exists(); !admin {
		return t.update(func(rec *record) { rec.Rebasing, rec.Merging = nil, "" })
	}
	g, err := t.ownGit(ctx)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(t.record().GitDir, "rebase-merge")); err == nil {
		if _, err := g.out(ctx, "rebase", "--abort"); err != nil {
			return fmt.Errorf("abort the rebase: %w", err)
		}
	}
	if merging := t.record().Merging; merging != "" {
		if err := t.finishMerge(ctx, g, merging); err != nil {
			return err
		}
	}
	done, err := g.contains(ctx, "HEAD", onto.Commit)
	if err != nil {
		return fmt.Errorf("look at the rebase: %w", err)
	}
	if done && t.record().Private {
		if err := t.reseatPrivate(ctx, *onto); err != nil {
			return err
		}
	}
	return t.update(func(rec *record) {
		if done {
			rec.Spec.Base = *onto
		}
		rec.Rebasing, rec.Merging = nil, ""
	})
}

// ownGit is the worktree's git for commits of ralph's own.
func (t *Tree) ownGit(ctx context.Context) (git, error) {
	g, err := t.filesGit(ctx)
	if err != nil {
		return g, err
	}
	return g.withIdent(ctx)
}
