package worktree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove deletes the worktree (never the refs). It fails with ErrKept when something in it is on no ref of ralph's.
// Removing what is half made, half removed or gone is not an error.
func (t *Tree) Remove(ctx context.Context) error {
	s := t.Spec()
	unlock, err := t.repo.lock(ctx, s.Key)
	if err != nil {
		return fmt.Errorf("remove worktree of %s: %w", s.Key, err)
	}
	defer unlock()
	if err := t.remove(ctx); err != nil {
		return fmt.Errorf("remove worktree of %s: %w", s.Key, err)
	}
	return nil
}

func (t *Tree) remove(ctx context.Context) error {
	if err := t.checkHandedBack(ctx); err != nil {
		return err
	}
	return t.discard()
}

// Close is HandBack and Remove in one, with one look at the files. A worktree whose work cannot be taken back stays,
// and the error says why; the HandBack is as far as it came.
func (t *Tree) Close(ctx context.Context) (HandBack, error) {
	s := t.Spec()
	unlock, err := t.repo.lock(ctx, s.Key)
	if err != nil {
		return HandBack{}, fmt.Errorf("close worktree of %s: %w", s.Key, err)
	}
	defer unlock()
	got, err := t.handBack(ctx)
	if err == nil {
		err = t.confirm(ctx, got)
	}
	if err == nil {
		err = t.discard()
	}
	if err != nil {
		return got, fmt.Errorf("close worktree of %s: %w", s.Key, t.repo.whyTooBig(err))
	}
	return got, nil
}

// confirm makes sure that the refs still hold what was handed back: who knows them need not have written them.
func (t *Tree) confirm(ctx context.Context, got HandBack) error {
	files, admin := t.exists()
	if !files && !admin || t.halfMade() {
		return nil
	}
	refs, err := t.readRefs(ctx)
	if err != nil {
		return err
	}
	if got.Tip != refs.work || got.WIP != "" && got.WIP != refs.wip {
		return fmt.Errorf("%w: ralph's refs of %s were moved meanwhile", ErrKept, t.Spec().Key)
	}
	return nil
}

// discard deletes files, git's record and ralph's own, in this order: the record is what finds the rest after a crash.
// The files leave their place by one rename, so that no later look takes a half-deleted worktree for changes.
func (t *Tree) discard() error {
	r := t.repo
	trash := r.path("trash", t.name+"-"+rand.Text())
	if err := os.Rename(t.Dir(), trash); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", t.Dir(), err)
	}
	gitDir := t.record().GitDir
	if filepath.Dir(gitDir) != filepath.Join(r.common, "worktrees") {
		return fmt.Errorf("remove %s: not a worktree of this repository", gitDir)
	}
	if err := r.unlink(gitDir, trash+"-git"); err != nil {
		return err
	}
	if err := t.discardPrivate(); err != nil {
		return err
	}
	if err := os.Remove(r.refsPath(t.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the list of refs: %w", err)
	}
	if err := os.Remove(r.recordPath(t.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record: %w", err)
	}
	if err := removeTree(trash); err != nil {
		// Nothing depends on it any more; the next Open tries again.
		r.opts.Log.Warn().Err(err).Str("path", trash).Msg("removed worktree is still on disk")
	}
	return nil
}

// unlink deletes git's record of a worktree, at once where it can: git dies at one that is half deleted.
func (r *Repo) unlink(gitDir, trash string) error {
	err := os.Rename(gitDir, trash)
	if err == nil {
		return os.RemoveAll(trash)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The state folder may be on another file system. Nothing here waits for anything, so neither does this.
	unlock, err := r.lockWorktrees(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.RemoveAll(gitDir); err != nil {
		return fmt.Errorf("remove %s: %w", gitDir, err)
	}
	return nil
}

// emptyTrash deletes what a crash left of removed worktrees.
func (r *Repo) emptyTrash() {
	entries, err := os.ReadDir(r.path("trash"))
	if err != nil {
		return
	}
	for _, e := range entries {
		if err := removeTree(r.path("trash", e.Name())); err != nil {
			r.opts.Log.Warn().Err(err).Str("path", r.path("trash", e.Name())).Msg("removed worktree is still on disk")
		}
	}
}

// removeTree deletes a folder, also where an agent's tools left read-only folders in it. No link is followed.
func removeTree(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	openFolders(parent, filepath.Base(dir))
	return os.RemoveAll(dir)
}

// openFolders gives the owner all rights on a folder and those below it. A failure shows when deleting fails.
func openFolders(root *os.Root, dir string) {
	info, err := root.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if err := root.Chmod(dir, 0o700); err != nil {
		return
	}
	f, err := root.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	_ = f.Close()
	for _, e := range entries {
		if e.IsDir() {
			openFolders(root, filepath.Join(dir, e.Name()))
		}
	}
}

// setAside keeps the files and the private repository of a run whose work cannot be taken back, in a folder that ralph
// never deletes, and frees the key for the next run. What was handed back before stays on the branch.
func (t *Tree) setAside(why error) error {
	to := t.repo.path("kept", t.name+"-"+rand.Text())
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("set run %s aside: %w", t.Spec().Run, err)
	}
	for from, name := range map[string]string{t.Dir(): "files", t.privateDir(): "repository"} {
		if err := os.Rename(from, filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set run %s aside: %w", t.Spec().Run, err)
		}
	}
	t.repo.opts.Log.Warn().Err(why).Str("run", t.Spec().Run).Str("kept", to).
		Msg("work of an earlier run cannot be taken back; its files and its repository are kept")
	return t.discard()
}
