package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// removeLevels is how many levels of folders RemoveAll opens at once. Deeper trees are rare; their folders are moved up.
const removeLevels = 32

// removeRounds limits the passes of RemoveAll, so that a process that keeps creating files cannot keep it busy forever.
const removeRounds = 100

// RemoveAll deletes a file or a folder, including read-only folders in it. It follows no links. However deep the folder is,
// RemoveAll needs few open files and little memory, and its time depends only on the number of files. If something cannot
// be deleted, the rest is deleted. The error names only dir: an agent may have chosen the names below.
func RemoveAll(dir string) error { return removeAll(dir, func() {}) }

// removeAll calls after at the end of each pass.
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
		// A directory listing may skip names while others are removed; the next pass finds them.
		if errors.Is(failed, fs.ErrNotExist) {
			failed = nil
		}
		if removed == 0 && (failed != nil || !errors.Is(err, syscall.ENOTEMPTY)) { // otherwise another process has deleted the rest
			if failed != nil && !errors.Is(failed, syscall.ENOTDIR) {
				err = failed
			}
			return fmt.Errorf("remove %s: %w", dir, cause(err))
		}
		after()
	}
	return fmt.Errorf("remove %s: another process makes files in it all the time", dir)
}

// cause returns an error without file names.
func cause(err error) error {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return no
	}
	return err
}
