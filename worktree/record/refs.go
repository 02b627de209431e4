package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

func (s Store) refsPath(name string) string { return filepath.Join(s.Dir, name+".refs") }

// SaveRefs stores, beside a record, the commits of refs as they were before an agent worked in the worktree.
func (s Store) SaveRefs(name string, commits []string) error {
	commits = slices.Compact(slices.Sorted(slices.Values(commits)))
	return git.WriteNew(s.refsPath(name), []byte(strings.Join(commits, "\n")+"\n"), 0o600, false)
}

// LoadRefs returns the commits that SaveRefs has stored, or none.
func (s Store) LoadRefs(name string) ([]string, error) {
	content, err := os.ReadFile(s.refsPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool { return !git.IsObject(line) }), err
}

// Remove deletes a record and the files stored beside it, the record last, so that a crash leaves it.
func (s Store) Remove(name string) error {
	for _, path := range []string{s.refsPath(name), s.Path(name)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove record: %w", err)
		}
	}
	return nil
}
