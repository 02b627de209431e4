package worktree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// CopyIn copies files and folders of the user's checkout, such as what git ignores, to the same place in the worktree.
// Paths are relative to the top of the checkout. No link is followed out of either tree; links that stay inside are
// copied as links. Modes are kept, files are shared with the original where the file system can do that, and what is
// in the way in the worktree is replaced, but for folders, which are merged. A path that is missing, leads out of the
// checkout or into a git directory, or is no file, folder or link, is an error.
func (t *Tree) CopyIn(ctx context.Context, paths []string) error {
	from, err := os.OpenRoot(t.repo.top)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer from.Close()
	to, err := os.OpenRoot(t.Dir())
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer to.Close()
	c := copier{from: from, to: to}
	for _, path := range paths {
		if err := c.path(ctx, path); err != nil {
			return fmt.Errorf("copy %q from %s: %w", path, t.repo.top, err)
		}
	}
	return nil
}

// copier copies between two folders that it cannot leave.
type copier struct{ from, to *os.Root }

func (c copier) path(ctx context.Context, path string) error {
	path = filepath.Clean(path)
	if !filepath.IsLocal(path) || path == "." {
		return errors.New("it has to be a path inside the checkout")
	}
	if inGitDir(path) {
		return errors.New("a git directory cannot be copied")
	}
	if err := c.to.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return fs.WalkDir(rootFS{c.from}, path, func(at string, d fs.DirEntry, err error) error {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if at != path && strings.EqualFold(d.Name(), ".git") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return c.entry(at)
	})
}

func (c copier) entry(path string) error {
	info, err := c.from.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return c.folder(path, info)
	case info.Mode().IsRegular():
		return c.file(path, info)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.link(path)
	}
	return fmt.Errorf("%s is not a file, folder or link", path)
}

func (c copier) folder(path string, info fs.FileInfo) error {
	if old, err := c.to.Lstat(path); err == nil && !old.IsDir() {
		if err := c.to.Remove(path); err != nil {
			return err
		}
	}
	if err := c.to.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The owner can always write: files are still to be put into it.
	return c.to.Chmod(path, info.Mode().Perm()|0o700)
}

func (c copier) link(path string) error {
	target, err := c.from.Readlink(path)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(path), target)) {
		return fmt.Errorf("%s is a link out of the checkout, to %s", path, target)
	}
	if err := c.to.RemoveAll(path); err != nil {
		return err
	}
	return c.to.Symlink(target, path)
}

// file writes the copy beside its final name, so that neither a link there is followed nor half a file is left.
func (c copier) file(path string, info fs.FileInfo) error {
	in, err := c.from.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if now, err := in.Stat(); err != nil || !os.SameFile(info, now) {
		return errors.Join(fmt.Errorf("%s has been replaced while it was copied", path), err)
	}
	temp := filepath.Join(filepath.Dir(path), ".ralph-copy-"+rand.Text())
	err = c.fill(in, temp, info)
	if err == nil {
		if old, statErr := c.to.Lstat(path); statErr == nil && old.IsDir() {
			err = c.to.RemoveAll(path)
		}
	}
	if err == nil {
		err = c.to.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(c.to.Remove(temp)))
	}
	return nil
}

// fill makes temp with the content and mode of in.
func (c copier) fill(in *os.File, temp string, info fs.FileInfo) error {
	if err := c.clone(in, temp); err != nil {
		out, err := c.to.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return c.to.Chmod(temp, info.Mode().Perm())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// inGitDir reports a path with a .git in it, in any case: file systems may not tell them apart.
func inGitDir(path string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// rootFS is a root for fs.WalkDir, whose first look at a path does not follow a link.
type rootFS struct{ root *os.Root }

func (f rootFS) Open(name string) (fs.File, error)          { return f.root.Open(name) }
func (f rootFS) Stat(name string) (fs.FileInfo, error)      { return f.root.Lstat(name) }
func (f rootFS) Lstat(name string) (fs.FileInfo, error)     { return f.root.Lstat(name) }
func (f rootFS) ReadLink(name string) (string, error)       { return f.root.Readlink(name) }
func (f rootFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.root.FS(), name) }
