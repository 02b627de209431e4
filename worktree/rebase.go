package worktree

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/replay"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Rebase replays the branch onto a new base. It merges the base into a branch with merge commits instead: a replay would
// lose the resolutions in those commits. It works on objects only, without the files. It moves the branch and the work ref,
// and keeps an old tip that the new one does not contain under refs/ralph/old. On ErrConflict nothing changes.
//
// What the run's base or one of the former bases contains, and the new base lacks, was removed from the base by a person. It
// is not replayed. If the branch has merge commits, this is a conflict.
//
// Everything in the tree must be imported first. In a linked worktree the files are updated: uncommitted changes of tracked
// files are saved as in Import, then removed from the files. The folders of a private tree are not updated; the next call
// of Sandbox makes them anew.
func (t *Tree) Rebase(ctx context.Context, newBase Base, former ...string) (tip string, err error) {
	s := t.Spec()
	err = t.repo.locked(ctx, s.Key, "rebase "+s.Branch+" onto "+newBase.Name, func() (err error) {
		tip, err = t.rebase(ctx, newBase, former)
		return err
	})
	return tip, err
}

func (t *Tree) rebase(ctx context.Context, newBase Base, former []string) (string, error) {
	s := t.Spec()
	switch {
	case s.Detached:
		return "", errDetached
	case !git.IsObject(newBase.Commit):
		return "", fmt.Errorf("%q is not a commit", newBase.Commit)
	case s.Private && t.Unsaved():
		return "", fmt.Errorf("%w: %s", ErrUnsaved, t.Dir())
	case !s.Private && t.hasUnfinishedOperation():
		return "", fmt.Errorf("a rebase or merge is under way in %s; see: git -C %s status", t.Dir(), git.Quote(t.Dir()))
	}
	if !s.Private {
		if _, err := t.importWork(ctx, nil); err != nil {
			return "", err
		}
	}
	refs, err := t.readRefs(ctx)
	if err != nil {
		return "", err
	}
	if err := t.guard().Check(ctx); err != nil {
		return "", err
	}
	oldTip := refs.tip(t.Start())
	m, err := t.replayOnto(ctx, newBase, oldTip, former)
	if err != nil {
		return "", err
	}
	if err := t.updateRecord(func(rec *record.Record) { rec.PendingRebase, rec.Replaced = &m, oldTip }); err != nil {
		return "", err
	}
	tip := m.Tip
	sp, err := t.repo.spans.Read(ctx, newBase.Commit, tip)
	if err != nil {
		return "", err
	}
	edits, err := t.tipEdits(ctx, sp, refs, "")
	if err != nil {
		return "", err
	}
	if err := t.guard().MoveRefs(ctx, edits...); err != nil {
		return "", err
	}
	return tip, t.finishMove(context.WithoutCancel(ctx), true)
}

// finishMove updates base and files after a rebase that moved the refs, also after a crash. filesSaved: the files are saved.
func (t *Tree) finishMove(ctx context.Context, filesSaved bool) error {
	rec := t.record()
	m := rec.PendingRebase
	if m == nil {
		return nil
	}
	refs, err := t.readRefs(ctx)
	if err != nil {
		return err
	}
	refsMoved, err := t.repo.git.Contains(ctx, refs.tip(rec.Start), m.Tip)
	if err != nil {
		return err
	}
	if refsMoved && !rec.Spec.Private && m.Tip != rec.Replaced {
		if err := t.updateFiles(ctx, refs, filesSaved); err != nil {
			return err
		}
	}
	return t.updateRecord(func(rec *record.Record) {
		if refsMoved {
			rec.Spec.Base, rec.Start, rec.Earlier = m.Onto, m.Start, m.Earlier
		}
		if !refsMoved || !rec.Spec.Private || m.Tip == rec.Replaced {
			rec.Replaced = ""
		}
		rec.PendingRebase = nil
	})
}

// updateFiles updates index and files to HEAD. Somebody may have changed files since a crash: these changes are saved first,
// relative to the commit that the rebase has replaced.
func (t *Tree) updateFiles(ctx context.Context, refs treeRefs, filesSaved bool) error {
	hasFiles, hasEntry := t.exists()
	if !hasEntry {
		return nil
	}
	if hasFiles && !filesSaved {
		// git reset writes the index last, so an index that equals HEAD means that the reset was complete.
		complete, err := t.git().Test(ctx, "diff-index", "--cached", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD", "--")
		if complete {
			return nil
		}
		if err != nil && !git.Failed(err) {
			return err
		}
		f := foundWork{tip: t.record().Replaced}
		if f.tree, err = t.snapshot(ctx, f.tip); err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil { // not wrapped: an importer.UnsavedError would claim that all commits are imported
			return fmt.Errorf("finish the rebase: files in %s have changed since and cannot be saved: %s", t.Dir(), err.Error())
		}
		wip, err := t.commitFiles(ctx, f, refs.wip)
		if err != nil {
			return err
		}
		if wip != "" && wip != refs.wip {
			save := git.Edit{Ref: t.repo.refNames.WIP(t.Spec().Key), New: wip, Old: refs.wip}
			if err := t.repo.git.MoveRefs(ctx, save); err != nil {
				return err
			}
		}
	}
	config, err := t.userConfig(ctx)
	if err != nil {
		return err
	}
	// An agent can write this folder, so git must not start programs that it finds there.
	g := t.git().With(config.WithoutPrograms()...)
	if _, err := g.Output(ctx, "reset", "--hard", "--quiet", "--no-recurse-submodules", "HEAD"); err != nil {
		return fmt.Errorf("check out the files: %w", err)
	}
	return nil
}

// replayOnto makes the commits of tip that no former base contains anew on top of the new base.
func (t *Tree) replayOnto(ctx context.Context, base Base, tip string, former []string) (record.Rebase, error) {
	rec := t.record()
	m := record.Rebase{Onto: base, Start: rec.Start, Earlier: rec.Earlier}
	former = append(slices.Clone(former), rec.Spec.Base.Commit)
	sp, err := t.repo.spans.Read(ctx, base.Commit, tip, former...)
	if err != nil {
		return m, err
	}
	config, err := t.userConfig(ctx)
	if err != nil {
		return m, err
	}
	g := t.repo.git
	if rec.Spec.Private { // otherwise the agent could choose the merge driver that runs
		g = g.With(config.WithoutPrograms()...)
	}
	scratch := filepath.Join(t.repo.tempDir, "rebase-"+rand.Text())
	name, email := config.Ident()
	var renamed map[string]string
	m.Tip, renamed, err = replay.Options{
		Git: g, Objects: t.repo.objects, Scratch: scratch, Name: name, Email: email, Now: t.repo.now(), Top: t.repo.location.Top,
	}.Onto(ctx, base, rec.Spec.Branch, sp, former)
	if renamed != nil {
		m.Start, m.Earlier = cmp.Or(renamed[rec.Start], base.Commit), renamed[rec.Earlier]
	}
	return m, errors.Join(err, os.RemoveAll(scratch))
}
