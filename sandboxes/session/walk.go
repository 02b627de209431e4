package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is the maximum number of links on the way to a file.
const maxLinks = 40

// find opens the parent folder of a path; the caller closes it. It follows links on the way and, with follow, a final one,
// but only inside the workspace and never to git's own files: commands may have created them. missing, if set, creates a
// missing folder.
func (w *Workspace) find(clean string, follow bool, missing func(dir *os.Root, name string) error) (*os.Root, string, error) {
	for range maxLinks {
		dir, name, next, err := w.walk(clean, follow, missing)
		if err == nil && next != "" {
			clean, err = cleanPath(next)
		}
		if err != nil || next == "" {
			return dir, name, err
		}
	}
	return nil, "", fmt.Errorf("%w: the path has too many links", ErrPath)
}

// walk follows a path to its last name, or to a link; next is then the path to continue on. Each step starts from an open
// folder, so that no command can replace a folder already passed by a link.
func (w *Workspace) walk(clean string, follow bool, missing func(*os.Root, string) error) (
	dir *os.Root, name, next string, err error,
) {
	if dir, err = w.root.OpenRoot("."); err != nil {
		return nil, "", "", err
	}
	defer func() {
		if err != nil || next != "" {
			_ = dir.Close()
			dir = nil
		}
	}()
	parts := strings.Split(clean, string(filepath.Separator))
	for i, part := range parts {
		last := i == len(parts)-1
		info, err := dir.Lstat(part)
		if errors.Is(err, fs.ErrNotExist) && !last && missing != nil {
			if err = missing(dir, part); err == nil {
				info, err = dir.Lstat(part)
			}
		}
		switch {
		case last && errors.Is(err, fs.ErrNotExist):
			return dir, part, "", nil
		case err != nil:
			return dir, "", "", err
		case info.Mode().Type() == fs.ModeSymlink && (!last || follow):
			target, err := dir.Readlink(part)
			if err == nil && filepath.IsAbs(target) {
				err = fmt.Errorf("%w: a link leads out of it", ErrPath)
			}
			above, below := filepath.Join(parts[:i]...), filepath.Join(parts[i+1:]...)
			return dir, "", filepath.Join(above, target, below), err
		case last:
			return dir, part, "", nil
		}
		below, err := enter(dir, part, info)
		if err != nil {
			return dir, "", "", err
		}
		_ = dir.Close()
		dir = below
	}
	return dir, "", "", ErrPath // unreachable: a path has at least one name
}

// enter opens a folder and checks that it is the one of info.
func enter(dir *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	below, err := dir.OpenRoot(name + "/.") // the "/." fails at once if a named pipe has replaced the folder
	if err != nil {
		return nil, err
	}
	now, err := below.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = fmt.Errorf("%w: a folder on the path is being replaced", ErrPath)
	}
	if err != nil {
		_ = below.Close()
		return nil, err
	}
	return below, nil
}
