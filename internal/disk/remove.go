package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// removeLevels is how many levels of folders RemoveAll has open at once. Only few trees are deeper, and have folders moved.
const removeLevels = 32

// removeRounds is how often RemoveAll looks for more. A process that makes files all the time could keep it for ever.
const removeRounds = 100

// RemoveAll deletes a file or a folder, also when there are read-only folders in it. It follows no link. It needs few open
// files and little memory however deep the folder is, and its time grows with the number of files alone. When something
// cannot be deleted, the rest is deleted, and the error names only dir: the names below may be an agent's.
func RemoveAll(dir string) error { return removeAll(dir, func() {}) }

// removeAll calls after at the end of each round.
func removeAll(dir string, after func()) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, cause(err))
	}
	defer parent.Close()
	name := filepath.Base(dir)
	for range removeRounds {
		err := parent.Remove(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		removed := 0
		failed := walk(parent, name, removeLevels, func(folder *os.Root, name string) {
			if e := folder.Remove(name); e == nil {
				removed++
			} else if !errors.Is(e, syscall.ENOTEMPTY) && !errors.Is(e, fs.ErrNotExist) {
				err = e
			}
		})
		// A file system may leave names out of a list while others are removed; another look finds these.
		if errors.Is(failed, fs.ErrNotExist) {
			failed = nil
		}
		if removed == 0 && (failed != nil || !errors.Is(err, syscall.ENOTEMPTY)) { // else another process has deleted what was there
			if failed != nil && !errors.Is(failed, syscall.ENOTDIR) {
				err = failed
			}
			return fmt.Errorf("remove %s: %w", dir, cause(err))
		}
		after()
	}
	return fmt.Errorf("remove %s: another process makes files in it all the time", dir)
}

// cause is an error without the names in it.
func cause(err error) error {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return no
	}
	return err
}
