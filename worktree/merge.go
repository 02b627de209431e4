package worktree

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/worktree/git"
)

// LockMerges waits for the right to move base branches of this repository, across processes.
func (r *Repo) LockMerges(ctx context.Context) (unlock func(), err error) {
	return git.LockFile(ctx, r.path("locks", "merge"))
}

// Merge merges tip into the base branch: by fast-forward, or by a merge commit that is made without a checkout. Then the
// branch moves from exactly base.Commit, and the checkout of the branch with it, if there is one. A dirty checkout that is
// in the way (ErrDirty), a changed file that goes through a filter there (ErrFiltered), a conflict (ErrConflict) or a base that
// moved (ErrMoved) leaves everything as it was. Callers hold LockMerges. The message is neutralized, so that it does not act
// on a forge. A tip that base already contains is not an error.
func (r *Repo) Merge(ctx context.Context, base Base, tip, message string) (commit string, err error) {
	if commit, err = r.merge(ctx, base, tip, message); err != nil {
		return "", fmt.Errorf("merge into %s: %w", base.Name, err)
	}
	return commit, nil
}

func (r *Repo) merge(ctx context.Context, base Base, tip, message string) (string, error) {
	if !strings.HasPrefix(base.Ref, "refs/heads/") {
		return "", fmt.Errorf("%w: it is not a branch of this repository", ErrNoBase)
	}
	if !git.IsObject(tip) || !git.IsObject(base.Commit) {
		return "", fmt.Errorf("%q and %q have to be full names of commits", base.Commit, tip)
	}
	if _, err := r.baseAt(ctx, base, base.Commit); err != nil {
		return "", err
	}
	place, err := r.checkoutOf(ctx, base.Ref)
	if err != nil {
		return "", err
	}
	if merged, err := r.git.Contains(ctx, base.Commit, tip); err != nil || merged {
		return base.Commit, err
	}
	commit := tip
	forward, err := r.git.Contains(ctx, tip, base.Commit)
	if err != nil {
		return "", err
	}
	if !forward {
		if commit, err = r.mergeCommit(ctx, base, tip, message); err != nil {
			return "", err
		}
	}
	if place == "" {
		return commit, r.git.MoveRefs(ctx, git.Edit{Ref: base.Ref, New: commit, Old: base.Commit})
	}
	return commit, r.advance(ctx, place, base, commit, tip)
}

// baseAt is the commit of the base branch; ErrMoved when it is none of the expected.
func (r *Repo) baseAt(ctx context.Context, base Base, expected ...string) (string, error) {
	refs, err := r.git.Refs(ctx, base.Ref)
	if err != nil {
		return "", err
	}
	at := refs[base.Ref]
	if !slices.Contains(expected, at) {
		return "", fmt.Errorf("%w: it is at %s, expected %s", ErrMoved, git.OrNothing(at), git.Short(base.Commit))
	}
	return at, nil
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
		case c.Branch != ref:
		case filepath.Dir(c.Dir) == r.path("worktrees"):
			return "", fmt.Errorf("it is checked out in the worktree of a run, %s; free it with: git -C %s switch --detach", c.Dir, git.Quote(c.Dir))
		case found != "":
			return "", fmt.Errorf("it is checked out twice, in %s and %s; free one with: git -C %s switch --detach", found, c.Dir, git.Quote(c.Dir))
		default:
			found = c.Dir
		}
	}
	return found, nil
}

// mergeCommit makes the merge commit without a checkout.
func (r *Repo) mergeCommit(ctx context.Context, base Base, tip, message string) (string, error) {
	tree, names, err := r.git.MergeTree(ctx, base.Commit, tip)
	if err != nil {
		return "", err
	}
	if names != "" {
		by := fmt.Sprintf("git -C %s merge %s", git.Quote(r.top), tip)
		if place, err := r.checkoutOf(ctx, base.Ref); err == nil && place != "" {
			by = fmt.Sprintf("git -C %s merge %s", git.Quote(place), tip)
		} else {
			by = fmt.Sprintf("git -C %s switch %s && %s", git.Quote(r.top), git.Quote(base.Name), by)
		}
		return "", fmt.Errorf("%w in %s; to solve it by hand: %s", ErrConflict, names, by)
	}
	g, err := r.git.WithIdent(ctx)
	if err != nil {
		return "", err
	}
	return g.CommitTree(ctx, tree, neutral.Text(message), base.Commit, tip)
}

// advance moves the branch together with its checkout. Git refuses before it changes anything when a changed or untracked
// file is in the way. It moves the branch after the files, so that a crash leaves a checkout ahead of its branch and not one
// that would undo the branch. It is not interrupted half-way.
func (r *Repo) advance(ctx context.Context, dir string, base Base, commit, tip string) error {
	gitDir, err := r.gitDirOf(dir)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	g, err := git.New(r.opts.StateDir).SameMemory(r.git).Pin(gitDir, r.common, dir).WithIdent(ctx)
	if err != nil {
		return err
	}
	config, err := g.Config(ctx)
	if err != nil {
		return err
	}
	safe, filters := g.OwnFilters(config, dir)
	switch path, err := g.Filtered(ctx, filters, filepath.Join(r.temp, "index-"+rand.Text()), base.Commit, commit); {
	case err != nil:
		return fmt.Errorf("look for filters: %w", err)
	case path != "":
		return fmt.Errorf("%w would run on %s in %s; if its program is no file of the commits, type: git -C %s merge %s",
			ErrFiltered, git.Printable(path), dir, git.Quote(dir), tip)
	}
	g = g.With(safe...)
	_, err = g.Out(ctx, "merge", "--ff-only", "--quiet", "--no-stat", "--no-autostash", "--no-overwrite-ignore", "--no-verify",
		"--no-verify-signatures", commit)
	if err == nil {
		return nil
	}
	at, readErr := r.baseAt(ctx, base, base.Commit, commit)
	if readErr != nil {
		return readErr
	}
	if at == commit {
		return nil
	}
	if path, lookErr := g.InTheWay(ctx, dir, commit); lookErr == nil && path != "" {
		return fmt.Errorf("%w in %s (%s) are in the way; commit or stash them, then: git -C %s merge %s",
			ErrDirty, dir, path, git.Quote(dir), tip)
	}
	return err
}
