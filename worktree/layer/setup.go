package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Beneath are the folders that a tree is laid over: that of a layer, which has to be there, and one with what setup has made.
// When somebody has removed the latter, an empty one takes its place: all work is in the tree itself. Empty ones stay empty.
func (s Stores) Beneath(name, setup string) (lower, over string, err error) {
	if name != "" {
		lower = s.Tree(name)
		if _, err := os.Lstat(lower); errors.Is(err, fs.ErrNotExist) {
			return "", "", fmt.Errorf("the files that the worktree is laid over are gone: %w", err)
		}
	}
	if _, err := os.Lstat(setup); setup != "" && errors.Is(err, fs.ErrNotExist) {
		setup = filepath.Join(s.Dir, "empty")
		return lower, setup, os.MkdirAll(setup, 0o700)
	}
	return lower, setup, nil
}
