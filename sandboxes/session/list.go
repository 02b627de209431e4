package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// maxEntries is the number of files and folders after which a listing fails.
const maxEntries = 500_000

// AllFiles is the pattern that matches every file.
const AllFiles = "**/*"

// ListFiles returns the regular files that match a pattern, sorted by path. The pattern has the syntax of doublestar: "**"
// matches any number of folders. The result includes links to files inside. It leaves out files behind links to folders,
// in folders more than 100 levels deep, or in git's own folders.
func (w *Workspace) ListFiles(pattern string) ([]string, error) {
	found, err := w.list([]string{pattern})
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", pattern, err)
	}
	return found, nil
}

// list lists the files that match one of the patterns.
func (w *Workspace) list(patterns []string) (found []string, err error) {
	for _, p := range patterns {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
	}
	seen, folders := 0, []string{"."}
	for len(folders) > 0 {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		// It may have been replaced meanwhile, for example by a named pipe.
		f, err := w.root.OpenFile(folder, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
		if err != nil && folder == "." {
			return nil, err
		}
		if err != nil {
			continue // gone or not readable: left out
		}
		err = entries(f, func(entry fs.DirEntry) error {
			if seen++; seen > maxEntries {
				return fmt.Errorf("%w: the workspace has more than %d files and folders", ErrTooLarge, maxEntries)
			}
			name := path.Join(folder, entry.Name())
			switch {
			case strings.EqualFold(entry.Name(), ".git"):
			case entry.IsDir() && strings.Count(name, "/") < maxDepth:
				folders = append(folders, name)
			case !entry.IsDir() && matchesAny(patterns, name) && w.isRegular(name, entry):
				found = append(found, name)
			}
			return nil
		})
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	// The files of a folder sort before names that begin with the folder's name.
	slices.SortFunc(found, func(a, b string) int {
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	return found, nil
}

// entries visits the entries of a folder in batches: a command may have created any number of files there. It ignores read
// errors.
func entries(folder fs.ReadDirFile, visit func(fs.DirEntry) error) error {
	for {
		some, err := folder.ReadDir(1000)
		for _, entry := range some {
			if err := visit(entry); err != nil {
				return err
			}
		}
		if err != nil || len(some) == 0 {
			return nil //nolint:nilerr // the end, or not readable
		}
	}
}

// isRegular reports whether an entry is a regular file or a link to one.
func (w *Workspace) isRegular(name string, entry fs.DirEntry) bool {
	if entry.Type() != fs.ModeSymlink {
		return entry.Type().IsRegular()
	}
	dir, base, err := w.find(filepath.FromSlash(name), true, nil)
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Lstat(base)
	return err == nil && info.Mode().IsRegular()
}

// matchesAny reports whether a path matches one of the patterns.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}

// checkPattern returns an error for an invalid pattern, which would match nothing.
func checkPattern(pattern string) error {
	if pattern == "" {
		return fmt.Errorf("pattern is empty; %q stands for all files", AllFiles)
	}
	if !doublestar.ValidatePattern(pattern) {
		return fmt.Errorf("pattern %q: %w", pattern, doublestar.ErrBadPattern)
	}
	return nil
}
