// Package merge merges commits into a base branch of the user's, and updates the checkout of that branch. Its caller is
// package worktree.
package merge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/worktree/base"
	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Errors for callers to check; each is wrapped with details.
var (
	// ErrDirty means that a merge would overwrite uncommitted changes of a checkout.
	ErrDirty = errors.New("uncommitted changes")
	// ErrFiltered means that git would run a filter of the user's configuration, other than Git LFS, in a folder that an
	// agent can write.
	ErrFiltered = errors.New("a filter of your git configuration")
	// ErrConflict means that a rebase or merge conflicts. Nothing was changed.
	ErrConflict = errors.New("conflict")
)

// Repo describes the repository with the branch.
type Repo struct {
	Git    git.Runner // of the user's current checkout
	Common string     // common git directory of the repository
	Top    string     // top of the user's current checkout
	State  string     // ralph's state folder
	Temp   string     // folder for temporary files
	Runs   string     // folder of the worktrees of runs
	// Checkouts lists the worktrees that git knows of.
	Checkouts func(context.Context) ([]checkout.Checkout, error)
}

// MergeInto merges tip into the branch of a base: by fast-forward, or by a merge commit that is made without a checkout. Then it
// moves the branch from exactly b.Commit, together with its checkout, if there is one. It changes nothing if files of the
// checkout are in the way (ErrDirty), a changed file goes through a filter there (ErrFiltered), there is a conflict
// (ErrConflict), or the branch has moved (git.ErrMoved). The message is neutralized, so that it does not act on a forge. A
// tip that the branch already contains is not an error.
func (r Repo) MergeInto(ctx context.Context, b record.Base, tip, message string) (commit string, err error) {
	switch {
	case !strings.HasPrefix(b.Ref, git.Heads):
		err = fmt.Errorf("%w: it is not a branch of this repository", base.ErrNone)
	case !git.IsObject(tip) || !git.IsObject(b.Commit):
		err = fmt.Errorf("%q and %q have to be full names of commits", b.Commit, tip)
	default:
		commit, err = r.into(ctx, b, tip, message)
	}
	if err != nil {
		return "", fmt.Errorf("merge into %s: %w", b.Name, err)
	}
	return commit, nil
}

func (r Repo) into(ctx context.Context, b record.Base, tip, message string) (commit string, err error) {
	if _, err := r.expectTip(ctx, b, b.Commit); err != nil {
		return "", err
	}
	if merged, err := r.Git.Contains(ctx, b.Commit, tip); err != nil || merged {
		return b.Commit, err
	}
	place, err := r.checkoutOf(ctx, b.Ref)
	if err != nil {
		return "", err
	}
	commit = tip
	forward, err := r.Git.Contains(ctx, tip, b.Commit)
	if err != nil {
		return "", err
	}
	if !forward {
		if commit, err = r.makeMergeCommit(ctx, b, tip, message); err != nil {
			return "", err
		}
	}
	if place.Dir == "" {
		return commit, r.Git.MoveRefs(ctx, git.Edit{Ref: b.Ref, New: commit, Old: b.Commit})
	}
	return commit, r.advance(ctx, place, b, commit, tip)
}

// expectTip returns the commit of the branch, and git.ErrMoved if it is none of the expected ones.
func (r Repo) expectTip(ctx context.Context, b record.Base, expected ...string) (string, error) {
	refs, err := r.Git.Refs(ctx, b.Ref)
	if err != nil {
		return "", err
	}
	at := refs[b.Ref]
	if !slices.Contains(expected, at) {
		return "", fmt.Errorf("%w: it is at %s, expected %s", git.ErrMoved, git.OrNothing(at), git.Short(b.Commit))
	}
	return at, nil
}

// Check fails if MergeInto would refuse because of a checkout that has the branch.
func (r Repo) Check(ctx context.Context, b record.Base) error {
	if _, err := r.checkoutOf(ctx, b.Ref); err != nil {
		return fmt.Errorf("merge into %s: %w", b.Name, err)
	}
	return nil
}

// checkoutOf returns the only checkout that has the branch checked out, or a zero one. It fails with a [*checkout.HeldError]
// while a rebase or bisection of the branch is unfinished: its end would move the branch back.
func (r Repo) checkoutOf(ctx context.Context, ref string) (found checkout.Checkout, err error) {
	all, err := r.Checkouts(ctx)
	if err != nil {
		return found, err
	}
	for _, c := range all {
		switch {
		case !c.Has(ref):
		case c.Begun[ref] != "":
			return found, c.Held(ref)
		case filepath.Dir(c.Dir) == r.Runs:
			return found, fmt.Errorf("it is checked out in the worktree of a run, %s; free it with: git -C %s switch --detach",
				c.Dir, git.Quote(c.Dir))
		case found.Dir != "":
			return found, fmt.Errorf("it is checked out twice, in %s and %s; free one with: git -C %s switch --detach",
				found.Dir, c.Dir, git.Quote(c.Dir))
		default:
			found = c
		}
	}
	return found, nil
}

// makeMergeCommit makes the merge commit without a checkout.
func (r Repo) makeMergeCommit(ctx context.Context, b record.Base, tip, message string) (string, error) {
	tree, conflicts, err := r.Git.MergeTree(ctx, b.Commit, tip)
	if err != nil {
		return "", err
	}
	if conflicts != "" {
		command := fmt.Sprintf("git -C %s merge %s", git.Quote(r.Top), tip)
		if place, err := r.checkoutOf(ctx, b.Ref); err == nil && place.Dir != "" {
			command = fmt.Sprintf("git -C %s merge %s", git.Quote(place.Dir), tip)
		} else {
			command = fmt.Sprintf("git -C %s switch %s && %s", git.Quote(r.Top), git.Quote(b.Name), command)
		}
		return "", fmt.Errorf("%w in %s; to solve it by hand: %s", ErrConflict, conflicts, command)
	}
	g, err := r.Git.WithIdent(ctx)
	if err != nil {
		return "", err
	}
	return g.CommitTree(ctx, tree, neutral.Text(message), b.Commit, tip)
}

// advance moves the branch together with its checkout. Git refuses before any change if a changed or untracked file is in
// the way. Git moves the branch after the files, so that a crash leaves a checkout ahead of its branch, not one that would
// revert the branch. advance ignores cancellation of ctx.
func (r Repo) advance(ctx context.Context, place checkout.Checkout, b record.Base, commit, tip string) error {
	dir := place.Dir
	if place.GitDir == "" {
		return fmt.Errorf("the git directory of the checkout %s is not known; check: git worktree list", dir)
	}
	ctx = context.WithoutCancel(ctx)
	g, err := git.New(r.State).ShareCache(r.Git).Pin(place.GitDir, r.Common, dir).WithIdent(ctx)
	if err != nil {
		return err
	}
	config, err := g.Config(ctx)
	if err != nil {
		return err
	}
	safe, filters := g.OwnFilters(config, dir)
	switch path, err := g.Filtered(ctx, filters, filepath.Join(r.Temp, "index-"+rand.Text()), b.Commit, commit); {
	case err != nil:
		return fmt.Errorf("look for filters: %w", err)
	case path != "":
		return fmt.Errorf("%w would run on %s in %s; if its program is not a file of the commits, type: git -C %s merge %s",
			ErrFiltered, git.Printable(path), dir, git.Quote(dir), tip)
	}
	g = g.With(safe...)
	_, err = g.Output(ctx, "merge", "--ff-only", "--quiet", "--no-stat", "--no-autostash", "--no-overwrite-ignore", "--no-verify",
		"--no-verify-signatures", commit)
	if err == nil {
		return nil
	}
	at, readErr := r.expectTip(ctx, b, b.Commit, commit)
	if readErr != nil {
		return readErr
	}
	if at == commit {
		return nil
	}
	if path, lookErr := g.BlockingPath(ctx, dir, commit); lookErr == nil && path != "" {
		return fmt.Errorf("%w in %s (%s) are in the way; commit or stash them, then: git -C %s merge %s",
			ErrDirty, dir, path, git.Quote(dir), tip)
	}
	return err
}
