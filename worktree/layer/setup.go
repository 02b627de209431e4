package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LowerFolders returns the folders below a tree: the layer, which must exist, and the folder with files made by setup. If
// somebody has removed the latter, LowerFolders uses an empty folder, because all work is in the tree itself. An empty
// argument gives an empty result.
func (s Stores) LowerFolders(name, setup string) (lower, over string, err error) {
	if name != "" {
		lower = s.Tree(name)
		if _, err := os.Lstat(lower); errors.Is(err, fs.ErrNotExist) {
			return "", "", fmt.Errorf("the lower files of the worktree's overlay are missing: %w", err)
		}
	}
	if _, err := os.Lstat(setup); setup != "" && errors.Is(err, fs.ErrNotExist) {
		setup = filepath.Join(s.Dir, "empty")
		return lower, setup, os.MkdirAll(setup, 0o700)
	}
	return lower, setup, nil
}
