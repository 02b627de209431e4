package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/inert"
)

// LockMerges waits for the right to move base branches of this repository, across processes.
func (r *Repo) LockMerges(ctx context.Context) (unlock func(), err error) {
	return lockFile(ctx, r.path("locks", "merge"))
}

// Merge brings tip into the base branch: by fast-forward where that is possible, else by a merge commit made without
// touching any checkout, then moves the branch from exactly base.Commit and, where the branch is checked out, the
// checkout with it. A dirty checkout that is in the way (ErrDirty), a conflict (ErrConflict) or a base that moved
// (ErrMoved) leaves everything as it was. Callers hold LockMerges. The message names what others have written, and acts
// on nothing. A tip that base contains already is not an error.
func (r *Repo) Merge(ctx context.Context, base Base, tip, message string) (commit string, err error) {
	if commit, err = r.merge(ctx, base, tip, message); err != nil {
		return "", fmt.Errorf("merge into %s: %w", base.Name, err)
	}
	return commit, nil
}

func (r *Repo) merge(ctx context.Context, base Base, tip, message string) (string, error) {
	if !strings.HasPrefix(base.Ref, "refs/heads/") {
		return "", errors.New("it is not a branch of this repository; name one with: --base BRANCH")
	}
	if !isObjectName(tip) || !isObjectName(base.Commit) {
		return "", fmt.Errorf("%q and %q have to be full names of commits", base.Commit, tip)
	}
	at, err := r.git.readRefs(ctx, base.Ref)
	if err != nil {
		return "", err
	}
	if at[base.Ref] != base.Commit {
		return "", fmt.Errorf("%w: it is at %s, expected %s", ErrMoved, orNone(at[base.Ref]), short(base.Commit))
	}
	place, err := r.checkoutOf(ctx, base.Ref)
	if err != nil {
		return "", err
	}
	if merged, err := r.git.contains(ctx, base.Commit, tip); err != nil || merged {
		return base.Commit, err
	}
	commit := tip
	forward, err := r.git.contains(ctx, tip, base.Commit)
	if err != nil {
		return "", err
	}
	if !forward {
		if commit, err = r.mergeCommit(ctx, base, tip, message); err != nil {
			return "", err
		}
	}
	if place == "" {
		return commit, r.git.moveRefs(ctx, "merge", refEdit{ref: base.Ref, new: commit, old: base.Commit})
	}
	return commit, r.advance(ctx, place, base, commit, tip)
}

// checkoutOf finds the one checkout that has the branch; empty: none.
func (r *Repo) checkoutOf(ctx context.Context, ref string) (string, error) {
	all, err := r.checkouts(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, c := range all {
		switch {
		case c.branch != ref:
		case filepath.Dir(c.dir) == r.path("worktrees"):
			return "", fmt.Errorf("it is checked out in the worktree of a run, %s; free it with: git -C %s switch --detach", c.dir, quote(c.dir))
		case found != "":
			return "", fmt.Errorf("it is checked out twice, in %s and %s; free one with: git -C %s switch --detach", found, c.dir, quote(c.dir))
		default:
			found = c.dir
		}
	}
	return found, nil
}

// mergeCommit makes the merge as objects only.
func (r *Repo) mergeCommit(ctx context.Context, base Base, tip, message string) (string, error) {
	if err := r.needGit("2.38", "merging"); err != nil {
		return "", err
	}
	tree, names, err := r.git.mergeTree(ctx, base.Commit, tip)
	if err != nil {
		return "", err
	}
	if names != "" {
		by := fmt.Sprintf("git -C %s merge %s", quote(r.top), tip)
		if place, err := r.checkoutOf(ctx, base.Ref); err == nil && place != "" {
			by = fmt.Sprintf("git -C %s merge %s", quote(place), tip)
		} else {
			by = fmt.Sprintf("git -C %s switch %s && %s", quote(r.top), quote(base.Name), by)
		}
		return "", fmt.Errorf("%w in %s; to solve it by hand: %s", ErrConflict, names, by)
	}
	g, err := r.git.withIdent(ctx)
	if err != nil {
		return "", err
	}
	return g.commitMerge(ctx, tree, base.Commit, tip, inert.Text(message))
}

// advance moves the branch together with the checkout that has it. git refuses before it changes anything when a
// changed or untracked file is in the way, and it moves the branch only after the files: a crash between leaves a
// checkout ahead of its branch, never a branch whose checkout would undo it. It is not interrupted half-way.
func (r *Repo) advance(ctx context.Context, dir string, base Base, commit, tip string) error {
	gitDir, err := r.gitDirOf(dir)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	g, err := newGit(r.opts.StateDir, environ()).pin(gitDir, r.common, dir).withIdent(ctx)
	if err != nil {
		return err
	}
	_, err = g.out(ctx, "merge", "--ff-only", "--quiet", "--no-stat", "--no-autostash", "--no-overwrite-ignore", "--no-verify",
		"--no-verify-signatures", commit)
	if err == nil {
		return nil
	}
	at, readErr := r.git.readRefs(ctx, base.Ref)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	if at[base.Ref] == commit {
		return nil
	}
	if at[base.Ref] != base.Commit {
		return fmt.Errorf("%w: it is at %s, expected %s", ErrMoved, orNone(at[base.Ref]), short(base.Commit))
	}
	if l, statusErr := g.status(ctx); statusErr == nil && len(l.changes) > 0 {
		return fmt.Errorf("%w in %s (%s) are in the way; commit or stash them, then: git -C %s merge %s",
			ErrDirty, dir, printable(l.changes[0].path), quote(dir), tip)
	}
	return err
}
