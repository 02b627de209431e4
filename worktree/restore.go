package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/internal/private"
	"github.com/ralph-pool/ralph/worktree/record"
)

// restore recreates deleted folders around the files of a private tree, so that the files can be imported.
func (t *Tree) restore(ctx context.Context) error {
	rec := t.record()
	gone := func(dir string) bool {
		_, err := os.Lstat(dir)
		return errors.Is(err, fs.ErrNotExist)
	}
	givenMissing, repoMissing := gone(t.givenDir()), gone(t.privateDir())
	if rec.Spec.Detached || !givenMissing && !repoMissing && !gone(t.repo.history().Path(rec.History)) {
		return nil
	}
	refs, err := t.readRefs(ctx)
	if err != nil {
		return err
	}
	config, err := t.userConfig(ctx)
	if err != nil {
		return err
	}
	tip, partial := refs.tip(rec.Start), config.Get("extensions.partialclone") != ""
	h := t.repo.history()
	err = h.Make(ctx, rec.History, partial)
	if err == nil && givenMissing {
		err = h.Give(ctx, t.givenDir(), rec.History, partial, slices.Compact([]string{rec.FoldersCommit, tip})...)
	}
	if git.Failed(err) && !importer.IsTemporary(err) && ctx.Err() == nil { // the user's repository lacks the commits, too
		err = errors.Join(err, t.updateRecord(func(rec *record.Record) { rec.SetPermanent(err) }))
	}
	if err != nil || !repoMissing {
		return err
	}
	t.repo.log.Warn("the private repository of a run was deleted: commits that were not imported are lost, the files are not",
		"run", rec.Spec.Run, "repository", t.privateDir())
	files := private.Files{From: t.repo.location, Config: config, Spec: rec.Spec, Commit: tip, Given: t.objectFolders()}
	return files.Restore(ctx, t.git(), filepath.Join(t.repo.tempDir, "repository-"+t.name), t.privateDir())
}
