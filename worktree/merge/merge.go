// Package merge merges commits into a base branch of the user's, and updates the checkout of that branch. Its caller is
// package worktree.
package merge

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

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
	// ErrBehind means that the branch was moved, and that a checkout to which the user has switched it meanwhile was not: a
	// commit there would undo the merge.
	ErrBehind = errors.New("its checkout was not updated")
	// ErrUndone means that the branch was moved, and that a commit of the user's on top of it undoes the merge. It is an ErrBehind.
	ErrUndone = errors.New("undoes the merge")
)

// errLeft means that the branch is not checked out any more where it was.
var errLeft = errors.New("it is checked out and left again all the time")

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
	// Sleep waits while another program holds a lock; nil: real time.
	Sleep func(ctx context.Context, d time.Duration) error
}

// MergeInto merges tip into the branch of a base: by fast-forward, or by a merge commit that is made without a checkout. Then it
// moves the branch from exactly b.Commit, together with its checkout, if there is one. It changes nothing if files of the
// checkout are in the way (ErrDirty), a changed file goes through a filter there (ErrFiltered), there is a conflict
// (ErrConflict), the branch has moved (git.ErrMoved), or another program has locked it. The message is neutralized, so that it
// does not act on a forge. A tip that the branch already contains is not an error. With ErrBehind it also returns the commit.
func (r Repo) MergeInto(ctx context.Context, b record.Base, tip, message string) (commit string, err error) {
	switch {
	case !strings.HasPrefix(b.Ref, git.Heads):
		err = fmt.Errorf("%w: it is not a branch of this repository", base.ErrNone)
	case !git.IsObject(tip) || !git.IsObject(b.Commit):
		err = fmt.Errorf("%q and %q have to be full names of commits", b.Commit, tip)
	default:
		commit, err = r.into(ctx, b, tip, message)
	}
	if err == nil {
		return commit, nil
	}
	if err = fmt.Errorf("merge into %s: %w", b.Name, err); errors.Is(err, ErrBehind) {
		return commit, err
	}
	return "", err
}

func (r Repo) into(ctx context.Context, b record.Base, tip, message string) (commit string, err error) {
	if err := r.expectTip(ctx, b.Ref, b.Commit); err != nil {
		return "", err
	}
	if merged, err := r.Git.Contains(ctx, b.Commit, tip); err != nil || merged {
		return b.Commit, err
	}
	if _, err := r.checkoutOf(ctx, b.Ref); err != nil {
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
	const looks = 5 // the user may switch branches at the same time
	for n := 0; ; n++ {
		place, err := r.checkoutOf(ctx, b.Ref)
		if err != nil {
			return "", err
		}
		m := move{b.Ref, b.Commit, commit}
		if place.Dir == "" {
			if err := r.Git.MoveRefs(ctx, git.Edit{Ref: m.ref, New: m.new, Old: m.old}); err != nil {
				return "", err
			}
			return commit, r.follow(ctx, m, tip)
		}
		if err = r.advance(context.WithoutCancel(ctx), place, m, tip); !errors.Is(err, errLeft) || n == looks {
			return commit, err
		}
	}
}

// expectTip returns git.ErrMoved if the branch is not at the expected commit.
func (r Repo) expectTip(ctx context.Context, ref, expected string) error {
	refs, err := r.Git.Refs(ctx, ref)
	if err == nil && refs[ref] != expected {
		err = fmt.Errorf("%w: it is at %s, expected %s", git.ErrMoved, git.OrNothing(refs[ref]), git.Short(expected))
	}
	return err
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
