package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrSpecial says that a name is not that of a regular file.
var ErrSpecial = errors.New("it is not a regular file")

// OpenRegular opens a file of a folder that hostile programs may write to: no link, though os.Root follows those below its
// folder, and nothing that could block, such as a pipe.
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
