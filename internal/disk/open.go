package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrSpecial means that a name is not that of a regular file.
var ErrSpecial = errors.New("it is not a regular file")

// OpenRegular opens a regular file in a folder that hostile programs may write to. It refuses symbolic links, which os.Root
// follows within its folder, and files that could block, such as named pipes.
func OpenRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !(info.Mode().IsRegular() && os.SameFile(before, info)) {
		err = ErrSpecial
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Unlock gives the owner all permissions on folders, which a hostile program may have taken away. It follows no links, and
// skips missing folders. Only trusted programs may write to the parents of the folders.
func Unlock(folders ...string) error {
	for _, dir := range folders {
		if err := unlock(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore the permissions of %s: %w", dir, cause(err))
		}
	}
	return nil
}

func unlock(dir string) error {
	const all = 0o700
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return syscall.ENOTDIR
	case info.Mode()&all == all:
		return nil
	}
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.Chmod(filepath.Base(dir), info.Mode()&(fs.ModePerm|fs.ModeSetgid|fs.ModeSticky)|all)
}
