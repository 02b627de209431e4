package filecopy

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// clone makes temp share the blocks of in. If the file system does not support that, it fails and leaves no file.
func (c copier) clone(in *os.File, temp string) error {
	dir, err := c.to.Open(filepath.Dir(temp))
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Fclonefileat(int(in.Fd()), int(dir.Fd()), filepath.Base(temp), unix.CLONE_NOFOLLOW)
}
