package session

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxEntries is how many files and folders a listing reads before it fails.
const maxEntries = 500_000

// AllFiles is the pattern of every file.
const AllFiles = "**/*"

// ListFiles lists the regular files that a pattern matches, in the order of their paths. The pattern is one of doublestar:
// "**" stands for any number of folders. Links to files inside are listed; links to folders are not entered, nor are
// folders more than 100 deep. Git's own files are left out.
func (w *Workspace) ListFiles(pattern string) ([]string, error) {
	found, err := w.list([]string{pattern})
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", pattern, err)
	}
	return found, nil
}

// list lists the files that fit one of the patterns.
func (w *Workspace) list(patterns []string) (found []string, err error) {
	for _, p := range patterns {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
	}
	seen := 0
	err = fs.WalkDir(w.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if seen++; seen > maxEntries {
			return fmt.Errorf("%w: the workspace has more than %d files and folders", ErrTooLarge, maxEntries)
		}
		switch {
		case err != nil:
			if name == "." {
				return err
			}
			return nil // gone, or closed to us: it is not listed
		case entry.IsDir() && (strings.EqualFold(entry.Name(), ".git") || strings.Count(name, "/") >= maxDepth):
			return fs.SkipDir
		case !entry.IsDir() && !strings.EqualFold(entry.Name(), ".git") && fits(patterns, name) && w.isRegular(name, entry):
			found = append(found, name)
		}
		return nil
	})
	return found, err
}

// isRegular reports a file, or a link that leads to one.
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

// fits reports whether a path fits one of the patterns.
func fits(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}

// checkPattern refuses a pattern that matches nothing because of how it is written.
func checkPattern(pattern string) error {
	if pattern == "" {
		return fmt.Errorf("pattern is empty; %q stands for all files", AllFiles)
	}
	if !doublestar.ValidatePattern(pattern) {
		return fmt.Errorf("pattern %q: %w", pattern, doublestar.ErrBadPattern)
	}
	return nil
}
