package disk

import (
	"errors"
	"io/fs"
	"os"
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
