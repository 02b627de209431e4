// Package filecopy copies files between two trees that it cannot leave. Its caller is package worktree. It keeps no state
// and is safe for concurrent use.
package filecopy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Links says which symbolic links may be copied.
type Links bool

const (
	InnerLink Links = false // those that stay inside the tree
	AnyLink   Links = true
)

// Copy copies files and folders to the same place in another tree, or to where place says. Paths are relative. No link is
// followed out of either tree; links are copied as links, if links allows them. Modes and times of files are kept, and blocks
// are shared with the original where the file system can do that. Folders are merged; anything else in the way is replaced. The
// other tree may be the upper folder of an overlay: a folder in the place of a whiteout hides what is below. A path that is missing,
// leads out of the tree or into a git directory, or is no file, folder or link, is an error. The files in never are left
// out, by whatever name they are reached; one that is asked for by itself is an error.
func Copy(ctx context.Context, from, to string, paths []string, place func(path string) string, links Links, never ...string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer target.Close()
	c := copier{from: source, to: target, links: links}
	for _, path := range never {
		if info, err := os.Stat(filepath.Join(from, path)); err == nil {
			c.never = append(c.never, info)
		}
	}
	for _, path := range paths {
		at := path
		if place != nil {
			at = place(path)
		}
		if _, err := source.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy: %q is not in %s; put it there, or take it out of copy", path, from)
		}
		if err := c.path(ctx, filepath.Clean(path), filepath.Clean(at)); err != nil {
			return fmt.Errorf("copy %q from %s: %w", path, from, err)
		}
	}
	return nil
}

// copier copies between two folders that it cannot leave.
type copier struct {
	from, to *os.Root
	links    Links
	never    []fs.FileInfo
}

// kept reports one of the files that are never copied.
func (c copier) kept(info fs.FileInfo) bool {
	return slices.ContainsFunc(c.never, func(f fs.FileInfo) bool { return os.SameFile(f, info) })
}

// path copies what is at a path to a place in the other tree.
func (c copier) path(ctx context.Context, path, place string) error {
	for _, p := range []string{path, place} {
		if !filepath.IsLocal(p) || p == "." {
			return errors.New("it has to be a path inside the checkout")
		}
		if inGitDir(p) {
			return errors.New("a git directory cannot be copied")
		}
	}
	if err := c.parents(filepath.Dir(place)); err != nil {
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
		info, err := c.from.Lstat(at)
		switch {
		case err != nil:
			return err
		case c.kept(info) && at == path:
			return errors.New("it holds keys of yours, which no worktree gets")
		case c.kept(info):
			return nil
		}
		return c.entry(at, place+strings.TrimPrefix(at, path), info)
	})
}

func (c copier) entry(path, place string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return c.folder(place, info)
	case info.Mode().IsRegular():
		return c.file(path, place, info)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.link(path, place)
	}
	return fmt.Errorf("%s is not a file, folder or link", path)
}

// parents makes the folders that a path is in.
func (c copier) parents(dir string) error {
	for i, r := range dir + "/" {
		if old, err := c.to.Lstat(dir[:i]); r == '/' && err == nil && isWhiteout(old) {
			if err := c.uncover(dir[:i]); err != nil {
				return err
			}
		}
	}
	return c.to.MkdirAll(dir, 0o755)
}

func isWhiteout(info fs.FileInfo) bool { return info.Mode()&fs.ModeCharDevice != 0 }

// uncover makes a folder in the place of a whiteout of an overlay. What the lower folder has there stays hidden.
func (c copier) uncover(path string) error {
	if err := errors.Join(c.to.Remove(path), c.to.Mkdir(path, 0o755)); err != nil {
		return err
	}
	dir, err := c.to.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Fsetxattr(int(dir.Fd()), "user.overlay.opaque", []byte("y"), 0)
}

func (c copier) folder(path string, info fs.FileInfo) error {
	if old, err := c.to.Lstat(path); err == nil && !old.IsDir() {
		remove := c.to.Remove
		if isWhiteout(old) {
			remove = c.uncover
		}
		if err := remove(path); err != nil {
			return err
		}
	}
	if err := c.to.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The owner can always write: files are still to be put into it.
	return c.to.Chmod(path, info.Mode().Perm()|0o700)
}

func (c copier) link(path, place string) error {
	target, err := c.from.Readlink(path)
	if err != nil {
		return err
	}
	if c.links == InnerLink && (filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(path), target))) {
		return fmt.Errorf("%s is a link out of the checkout, to %s", path, target)
	}
	if err := c.to.RemoveAll(place); err != nil {
		return err
	}
	return c.to.Symlink(target, place)
}

// file writes the copy beside its final name, so that neither a link there is followed nor half a file is left.
func (c copier) file(path, place string, info fs.FileInfo) error {
	in, err := c.from.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if now, err := in.Stat(); err != nil || !os.SameFile(info, now) {
		return errors.Join(fmt.Errorf("%s has been replaced while it was copied", path), err)
	}
	temp := filepath.Join(filepath.Dir(place), ".ralph-copy-"+rand.Text())
	err = c.fill(in, temp, info)
	if err == nil {
		if old, statErr := c.to.Lstat(place); statErr == nil && old.IsDir() {
			err = c.to.RemoveAll(place)
		}
	}
	if err == nil {
		err = c.to.Rename(temp, place)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(c.to.Remove(temp)))
	}
	return nil
}

// fill makes temp with the content, mode and time of in: compiled files may hold the time of their source.
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
	return errors.Join(c.to.Chmod(temp, info.Mode().Perm()), c.to.Chtimes(temp, info.ModTime(), info.ModTime()))
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
