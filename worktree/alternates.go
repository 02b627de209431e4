package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// objectFolders is the folder and every one it borrows from, directly or not, as canonical paths. What an entry names
// but is not there is left out, as git does.
func objectFolders(dir string) ([]string, error) {
	var all []string
	for todo := []string{dir}; len(todo) > 0; todo = todo[1:] {
		at, err := filepath.EvalSymlinks(todo[0])
		if errors.Is(err, fs.ErrNotExist) && todo[0] != dir || slices.Contains(all, at) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find the repository's objects: %w", err)
		}
		all = append(all, at)
		content, err := os.ReadFile(filepath.Join(at, "info", "alternates"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("find the repository's objects: %w", err)
		}
		for line := range strings.Lines(string(content)) {
			if path := alternate(strings.TrimSuffix(line, "\n")); path != "" {
				if !filepath.IsAbs(path) {
					path = filepath.Join(at, path)
				}
				todo = append(todo, path)
			}
		}
	}
	return all, nil
}

// alternate reads a line of an alternates file; empty for a comment.
func alternate(line string) string {
	if strings.HasPrefix(line, "#") {
		return ""
	}
	if strings.HasPrefix(line, `"`) {
		if path, err := strconv.Unquote(line); err == nil {
			return path
		}
	}
	return line
}

// alternates is the content of an alternates file.
func alternates(folders []string) string {
	var b strings.Builder
	for _, f := range folders {
		if strings.HasPrefix(f, `"`) || strings.Contains(f, "\n") {
			f = strconv.Quote(f)
		}
		b.WriteString(f + "\n")
	}
	return b.String()
}
