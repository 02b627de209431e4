package worktree

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/traces"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Remove deletes the worktree, but no refs. After a call of Sandbox it fails with ErrUnsaved until everything is imported. It
// moves a tree whose imports keep failing to a folder that ralph never deletes, and returns an [*SetAsideError] that names
// this folder. It succeeds for a tree that is half made, half removed or gone.
func (t *Tree) Remove(ctx context.Context) error {
	key := t.Spec().Key
	return t.repo.locked(ctx, key, "remove worktree of "+key, t.remove)
}

func (t *Tree) remove() error {
	hasFiles, hasEntry := t.exists()
	if !t.Unsaved() || !hasFiles && !hasEntry || t.isHalfMade() {
		return t.discard()
	}
	rec := t.record()
	if !rec.IsPermanent() {
		if hasFiles && rec.Spec.Private { // a folder that ralph shows to a person must not lead git to an agent's repository
			return cmp.Or(t.hideGit(), ErrUnsaved)
		}
		return ErrUnsaved
	}
	aside := &SetAsideError{Cause: rec.Failure, Dir: t.newKeptDir()}
	if base, _, layered := strings.Cut(rec.Layer, "-"); layered {
		aside.BaseCommit = git.Short(base)
	}
	return cmp.Or[error](t.moveAside(aside.Dir), aside)
}

// DropUnused removes the branch and the last imported commit of a removed worktree if Add has made the branch, and nothing was
// imported: both are still at Base, there are no saved changes or old tips, and no checkout has the branch.
func (t *Tree) DropUnused(ctx context.Context) error {
	rec, r := t.record(), t.repo
	s := rec.Spec
	if _, err := os.Lstat(r.records.Path(t.name)); !rec.MadeBranch || rec.Start != s.Base.Commit || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return r.locked(ctx, s.Key, "remove the unused branch "+s.Branch, func() error {
		return r.branches().DropUnused(ctx, s.Key, s.Branch, rec.Start, r.HeldBranches)
	})
}

// SetAside removes the worktree. If it may have work that is not imported, SetAside moves the worktree to a folder that ralph
// never deletes, and returns an [*SetAsideError] with the given reason.
func (t *Tree) SetAside(ctx context.Context, why error) error {
	key := t.Spec().Key
	return t.repo.locked(ctx, key, "set worktree of "+key+" aside", func() error {
		if t.Unsaved() {
			if err := t.updateRecord(func(rec *record.Record) { rec.SetPermanent(why) }); err != nil {
				return err
			}
		}
		return t.remove()
	})
}

// Discard deletes the worktree with everything in it, but no refs.
func (t *Tree) Discard(ctx context.Context) error {
	key := t.Spec().Key
	return t.repo.locked(ctx, key, "discard worktree of "+key, t.discard)
}

// discard deletes files, git's record and ralph's record, in this order: after a crash, ralph's record leads to the rest.
func (t *Tree) discard() error {
	r := t.repo
	gitDir := t.record().GitDir
	if gitDir != "" && filepath.Dir(gitDir) != filepath.Join(r.location.Common, "worktrees") {
		return fmt.Errorf("remove %s: not a worktree of this repository", gitDir)
	}
	if err := t.discardFolders(); err != nil {
		return err
	}
	if gitDir != "" {
		if err := r.leftovers(nil).Unlink(context.Background(), gitDir); err != nil {
			return err
		}
	}
	return r.records.Remove(t.name)
}

// setAside moves the files and the private repository of a run whose work cannot be imported to the kept folder, so that
// the key is free for the next run. Work imported before stays on the branch.
func (t *Tree) setAside(why error) error {
	kept := t.newKeptDir()
	t.repo.log.Warn("work of an earlier run cannot be imported; its files and repository are kept", "run", t.Spec().Run, "kept", kept, "error", why)
	return t.moveAside(kept)
}

func (t *Tree) newKeptDir() string { return t.repo.statePath("kept", t.name+"-"+rand.Text()) }

// moveAside moves files and private repository to a folder. The files are last: without them, the tree counts as removed.
func (t *Tree) moveAside(to string) error {
	if err := traces.MoveAside(to, [2]string{"given", t.givenDir()}, [2]string{"repository", t.privateDir()}, [2]string{"files", t.Dir()}); err != nil {
		return fmt.Errorf("set run %s aside: %w", t.Spec().Run, err)
	}
	return t.discard()
}
