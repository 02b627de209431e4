package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/history"
	"github.com/ralph-pool/ralph/worktree/internal/private"
	"github.com/ralph-pool/ralph/worktree/layer"
	"github.com/ralph-pool/ralph/worktree/record"
)

func (t *Tree) privateDir() string { return t.repo.statePath("repos", t.name) }

// givenDir is the folder of the run's objects that the history store lacks: the branch's objects beyond the base, and those
// of every accepted import. The sandbox can read it; only the host writes it.
func (t *Tree) givenDir() string { return t.repo.statePath("given", t.name) }

// Sandbox returns the git folders that a sandbox on the tree may see, and records that the tree may have unsaved work from
// now on. Before the first call, Remove deletes the tree with everything in it. Call Sandbox before anything else works in
// the tree, with or without a sandbox, and again before each agent that starts after an Import. The result is zero for
// trees that are not private.
func (t *Tree) Sandbox(ctx context.Context) (p Private, err error) {
	key := t.Spec().Key
	err = t.repo.locked(ctx, key, "prepare "+key+" for a sandbox", func() (err error) {
		p, err = t.sandbox(ctx)
		return err
	})
	return p, err
}

func (t *Tree) sandbox(ctx context.Context) (Private, error) {
	if rec := t.record(); !rec.Used || !rec.InUse {
		if err := t.sealOrRenew(ctx); err != nil {
			return Private{}, err
		}
		if err := t.updateRecord(func(rec *record.Record) { rec.Used, rec.InUse = true, true }); err != nil {
			return Private{}, err
		}
	}
	if !t.Spec().Private {
		return Private{}, nil
	}
	if err := disk.Unlock(t.Folders()...); err != nil { // an agent may have closed them
		return Private{}, err
	}
	if err := t.restore(ctx); err != nil {
		return Private{}, err
	}
	rec := t.record()
	lower, setup, err := t.repo.layers().LowerFolders(rec.Layer, rec.Setup)
	if errors.Is(err, fs.ErrNotExist) { // without its layer the tree can never be imported
		err = errors.Join(err, t.updateRecord(func(rec *record.Record) { rec.SetPermanent(err) }))
	}
	if err != nil {
		return Private{}, err
	}
	return Private{GitDir: t.privateDir(), Objects: t.objectFolders(), Lower: lower, Setup: setup}, nil
}

// UndoSandbox undoes a call of Sandbox. The tree must have had no unsaved work before, and nothing may have worked in it
// since.
func (t *Tree) UndoSandbox() error {
	return t.updateRecord(func(rec *record.Record) { rec.InUse = false })
}

// AddSetup adds a folder with untracked files that setup has made. From the next call of Sandbox on, a sandbox that
// supports layers shows these files below those of a private tree. They must not change while the sandbox is open.
func (t *Tree) AddSetup(dir string) error {
	return t.updateRecord(func(rec *record.Record) { rec.Setup = dir })
}

// sealOrRenew removes the link to the git directory from the files before an agent gets them. If the host has rewritten the
// branch's commits since, it makes files and private repository anew, because the host does not change files that an agent
// could write.
func (t *Tree) sealOrRenew(ctx context.Context) error {
	rec := t.record()
	if !rec.Spec.Private || rec.Used && rec.Replaced == "" {
		return nil
	}
	if rec.Used {
		if err := t.renewPrivate(ctx); err != nil {
			return err
		}
	}
	return t.hideGit()
}

// hideGit makes the worktree's .git file point nowhere. A provider covers it with a file that names the private repository.
func (t *Tree) hideGit() error {
	return private.WriteGitFile(t.Dir(), filepath.Join(t.repo.opts.StateDir, "none"))
}

// renewPrivate replaces files and private repository with new ones at the branch's tip.
func (t *Tree) renewPrivate(ctx context.Context) error {
	refs, err := t.readRefs(ctx)
	if err != nil {
		return err
	}
	if err := t.discardFolders(); err != nil {
		return err
	}
	err = t.updateRecord(func(rec *record.Record) {
		rec.FoldersCommit, rec.History, rec.Layer, rec.Replaced, rec.Used, rec.Incomplete = refs.tip(rec.Start), rec.Spec.Base.Commit, "", "", false, true
	})
	if err == nil {
		err = t.makePrivate(ctx)
	}
	if err == nil {
		err = t.saveRecord(func(rec *record.Record) { rec.Incomplete = false }, false)
	}
	return err
}

// history returns the stores of the base's objects. A tree's record must be saved before its store is made.
func (r *Repo) history() history.Stores {
	return history.Stores{
		Dir: r.statePath("history"), Temp: r.tempDir, Lock: r.statePath("locks", "history"), Common: r.location.Common, Git: r.git,
		Used: r.records.Used(func(rec record.Record) string { return rec.History }),
	}
}

// layers returns the shared checkouts below private trees. A tree's record must be saved before the tree uses one.
func (r *Repo) layers() layer.Stores {
	return layer.Stores{
		Dir: r.statePath("layers"), Temp: r.tempDir, Lock: r.statePath("locks", "layers"), MaxBytes: r.opts.Layers,
		MinFiles: r.opts.LayerMinFiles, Log: r.log, Used: r.records.Used(func(rec record.Record) string { return rec.Layer }),
	}
}

// Temp returns the folder for temporary files of this process, on the file system of the worktrees.
func (r *Repo) Temp() string { return r.tempDir }

// PruneLayers removes unused shared checkouts until the rest takes at most the given number of bytes.
func (r *Repo) PruneLayers(ctx context.Context, most int64) error { return r.layers().Prune(ctx, most) }

// objectFolders returns the object folders that the private repository borrows from.
func (t *Tree) objectFolders() []string {
	return []string{t.repo.history().Path(t.record().History), t.givenDir()}
}

// makePrivate makes the checkout and its private repository, which has the branch at its tip, the base, HEAD, the index,
// the user's name and the settings that affect file contents. It has no remote, no hooks and no other branches. Filters
// such as Git LFS stay configured: if the program is missing in the sandbox, a required filter fails instead of committing
// unfiltered content. In a partial clone, the sandbox cannot fetch objects that are missing here.
func (t *Tree) makePrivate(ctx context.Context) error {
	dir := t.privateDir()
	if err := errors.Join(os.Mkdir(t.folder(), 0o700), os.Mkdir(t.Dir(), 0o700)); err != nil {
		return err
	}
	config, err := t.userConfig(ctx)
	if err != nil {
		return err
	}
	rec := t.record()
	files := private.Files{From: t.repo.location, Config: config, Spec: rec.Spec, Commit: rec.FoldersCommit, Given: t.objectFolders()}
	if err := files.Write(dir); err != nil {
		return err
	}
	partial := config.Get("extensions.partialclone") != ""
	group, ctx := errgroup.WithContext(ctx)
	if partial {
		group.SetLimit(1) // the checkout runs first and fetches the files
	}
	group.Go(func() error {
		layered, err := t.makeLayered(ctx, config)
		if err == nil && !layered {
			err = t.checkOut(ctx)
		}
		return err
	})
	group.Go(func() error {
		h := t.repo.history()
		err := h.Make(ctx, rec.History, partial)
		if err == nil {
			err = h.Give(ctx, t.givenDir(), rec.History, partial, rec.FoldersCommit)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return private.WriteGitFile(t.Dir(), dir)
}

// makeLayered makes files and index over a layer. It returns false if a plain checkout is needed.
func (t *Tree) makeLayered(ctx context.Context, config git.Config) (bool, error) {
	rec := t.record()
	if rec.Spec.Layers == nil || config.Get("core.sparsecheckout") == "true" {
		return false, nil
	}
	return t.repo.layers().MakeUpper(ctx, layer.Checkout{
		Git: t.git(), Config: config, ContentKey: config.Private(t.repo.location.Format).String() + private.Attributes(t.repo.location, config),
		Trusted: rec.Spec.Trusted(), Commit: rec.FoldersCommit, Dir: t.Dir(), Index: filepath.Join(t.privateDir(), "index"),
		CheckLayers: func(ctx context.Context) error { return rec.Spec.Layers(ctx, t.repo.tempDir) },
		RecordUse:   func(name string) error { return t.updateRecord(func(rec *record.Record) { rec.Layer = name }) },
	})
}

func (t *Tree) sharedFile(name string) string { return private.Shared(t.repo.location, name) }

// discardFolders deletes the files and the private repository with its folders.
func (t *Tree) discardFolders() error {
	return t.repo.trash.Put(t.name, t.folder(), t.privateDir(), t.quarantineDir(), t.givenDir())
}

// errNoSandbox means that a private tree can only be imported through its sandbox.
var errNoSandbox = errors.New("its sandbox has to be open")
