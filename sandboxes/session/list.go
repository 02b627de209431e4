package session

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// maxEntries is how many files and folders are looked at before a listing is given up.
const maxEntries = 500_000

// AllFiles is the pattern of every file.
const AllFiles = "**/*"

// ListFiles lists the regular files that a pattern matches, in the order of their paths. A part of the pattern between
// slashes is one for path.Match; "**" stands for any number of folders. Links to files inside are listed; links to
// folders are not entered, nor are folders more than 100 deep. Git's own files are left out.
func (w *Workspace) ListFiles(pattern string) ([]string, error) {
	found, err := w.list([]string{pattern})
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", pattern, err)
	}
	var all []string
	for _, f := range found {
		all = append(all, f.path)
	}
	return all, nil
}

// match is a file with the first pattern that it fits.
type match struct {
	path    string
	pattern int
}

// list lists the files that fit one of the patterns.
func (w *Workspace) list(patterns []string) ([]match, error) {
	for _, p := range patterns {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
	}
	var found []match
	seen := 0
	err := fs.WalkDir(w.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if seen++; seen > maxEntries {
			return fmt.Errorf("%w: the workspace has more than %d files and folders", ErrTooLarge, maxEntries)
		}
		switch {
		case err != nil:
			if name == "." {
				return err
			}
			return nil // gone, or not ours to read: it is not listed
		case strings.EqualFold(entry.Name(), ".git"):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			if strings.Count(name, "/") >= maxDepth {
				return fs.SkipDir
			}
			return nil
		}
		for i, p := range patterns {
			if fits(p, name) {
				if info, err := w.root.Stat(name); err == nil && info.Mode().IsRegular() {
					found = append(found, match{name, i})
				}
				break
			}
		}
		return nil
	})
	return found, err
}

// checkPattern refuses a pattern that path.Match does not understand.
func checkPattern(pattern string) error {
	if pattern == "" {
		return fmt.Errorf("pattern is empty; %q stands for all files", AllFiles)
	}
	for part := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(part, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	return nil
}

// fits reports whether a path fits a pattern, part by part. On a mismatch it goes back to the last "**" only, as that one
// may take whatever an earlier one could.
func fits(pattern, name string) bool {
	parts, names := strings.Split(pattern, "/"), strings.Split(name, "/")
	p, n := 0, 0
	star, resume := -1, 0
	for n < len(names) {
		if p < len(parts) && parts[p] == "**" {
			star, resume = p, n
			p++
			continue
		}
		if p < len(parts) {
			if ok, _ := path.Match(parts[p], names[n]); ok {
				p++
				n++
				continue
			}
		}
		if star < 0 {
			return false
		}
		resume++
		p, n = star+1, resume
	}
	for p < len(parts) && parts[p] == "**" {
		p++
	}
	return p == len(parts)
}
