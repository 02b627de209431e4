// Package filecopy copies files between two folder trees, for example from the user's checkout to a worktree, without
// following links out of either. Its caller is package worktree. It keeps no state and is safe for concurrent use.
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

// Links selects the symbolic links that may be copied.
type Links bool

const (
	InnerLink Links = false // only links that stay inside the tree
	AnyLink   Links = true
)

// Copy copies files and folders to the same paths in another tree, or to the paths that destination returns. Paths are
// relative. It follows no link out of either tree, and copies links as links if links allows them. It keeps modes and times
// of files, and shares blocks with the original where the file system supports that. It merges folders and replaces anything
// else in the way. The target may be the upper folder of an overlay: a folder that replaces a whiteout hides the folder
// below.
//
// Copy fails for a path that is missing, that leads out of the tree or into a git directory, or that is no file, folder or
// link. It skips the excluded files under any name, and fails if paths names one of them.
func Copy(ctx context.Context, from, to string, paths []string, destination func(path string) string, links Links, excluded ...string) error {
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
	for _, path := range excluded {
		if info, err := os.Stat(filepath.Join(from, path)); err == nil {
			c.excluded = append(c.excluded, info)
		}
	}
	for _, path := range paths {
		targetPath := path
		if destination != nil {
			targetPath = destination(path)
		}
		if _, err := source.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy: %q is not in %s; create it, or remove it from copy", path, from)
		}
		if err := c.copyPath(ctx, filepath.Clean(path), filepath.Clean(targetPath)); err != nil {
			return fmt.Errorf("copy %q from %s: %w", path, from, err)
		}
	}
	return nil
}

// copier copies between two folders that it cannot leave.
type copier struct {
	from, to *os.Root
	links    Links
	excluded []fs.FileInfo
}

// isExcluded reports whether the file is one that is never copied.
func (c copier) isExcluded(info fs.FileInfo) bool {
	return slices.ContainsFunc(c.excluded, func(f fs.FileInfo) bool { return os.SameFile(f, info) })
}

// copyPath copies the file, folder or link at path to destination in the other tree.
func (c copier) copyPath(ctx context.Context, path, destination string) error {
	for _, p := range []string{path, destination} {
		if !filepath.IsLocal(p) || p == "." {
			return errors.New("it has to be a path inside the checkout")
		}
		if inGitDir(p) {
			return errors.New("a git directory cannot be copied")
		}
	}
	if err := c.makeParents(filepath.Dir(destination)); err != nil {
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
		case c.isExcluded(info) && at == path:
			return errors.New("it contains your keys, which are never copied into a worktree")
		case c.isExcluded(info):
			return nil
		}
		return c.copyEntry(at, destination+strings.TrimPrefix(at, path), info)
	})
}

func (c copier) copyEntry(path, destination string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return c.makeFolder(destination, info)
	case info.Mode().IsRegular():
		return c.copyFile(path, destination, info)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.copyLink(path, destination)
	}
	return fmt.Errorf("%s is not a file, folder or link", path)
}

// makeParents makes the missing folders of a path.
func (c copier) makeParents(dir string) error {
	for i, r := range dir + "/" {
		if old, err := c.to.Lstat(dir[:i]); r == '/' && err == nil && isWhiteout(old) {
			if err := c.replaceWhiteout(dir[:i]); err != nil {
				return err
			}
		}
	}
	return c.to.MkdirAll(dir, 0o755)
}

func isWhiteout(info fs.FileInfo) bool { return info.Mode()&fs.ModeCharDevice != 0 }

// replaceWhiteout replaces a whiteout of an overlay with a folder. The contents of the lower folder stay hidden.
func (c copier) replaceWhiteout(path string) error {
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

func (c copier) makeFolder(path string, info fs.FileInfo) error {
	if old, err := c.to.Lstat(path); err == nil && !old.IsDir() {
		remove := c.to.Remove
		if isWhiteout(old) {
			remove = c.replaceWhiteout
		}
		if err := remove(path); err != nil {
			return err
		}
	}
	if err := c.to.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The owner needs write permission: files are still to be copied into the folder.
	return c.to.Chmod(path, info.Mode().Perm()|0o700)
}

func (c copier) copyLink(path, destination string) error {
	target, err := c.from.Readlink(path)
	if err != nil {
		return err
	}
	if c.links == InnerLink && (filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(path), target))) {
		return fmt.Errorf("%s is a link to %s, outside of the checkout", path, target)
	}
	if err := c.to.RemoveAll(destination); err != nil {
		return err
	}
	return c.to.Symlink(target, destination)
}

// copyFile writes the copy beside its final name, so that it follows no link there and leaves no partial file.
func (c copier) copyFile(path, destination string, info fs.FileInfo) error {
	in, err := c.from.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if now, err := in.Stat(); err != nil || !os.SameFile(info, now) {
		return errors.Join(fmt.Errorf("%s has been replaced while it was copied", path), err)
	}
	temp := filepath.Join(filepath.Dir(destination), ".ralph-copy-"+rand.Text())
	err = c.copyContent(in, temp, info)
	if err == nil {
		if old, statErr := c.to.Lstat(destination); statErr == nil && old.IsDir() {
			err = c.to.RemoveAll(destination)
		}
	}
	if err == nil {
		err = c.to.Rename(temp, destination)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(c.to.Remove(temp)))
	}
	return nil
}

// copyContent writes temp with the content, mode and time of in. The time matters: compiled files may record the time of
// their source.
func (c copier) copyContent(in *os.File, temp string, info fs.FileInfo) error {
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

// inGitDir reports whether a part of the path is .git, in upper or lower case: the file system may ignore case.
func inGitDir(path string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// rootFS adapts an os.Root to fs.WalkDir. Its Stat does not follow a link.
type rootFS struct{ root *os.Root }

func (f rootFS) Open(name string) (fs.File, error)          { return f.root.Open(name) }
func (f rootFS) Stat(name string) (fs.FileInfo, error)      { return f.root.Lstat(name) }
func (f rootFS) Lstat(name string) (fs.FileInfo, error)     { return f.root.Lstat(name) }
func (f rootFS) ReadLink(name string) (string, error)       { return f.root.Readlink(name) }
func (f rootFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.root.FS(), name) }
