package filecopy

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes temp share the blocks of in. If the file system does not support that, it fails and leaves no file.
func (c copier) clone(in *os.File, temp string) error {
	out, err := c.to.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
	err = errors.Join(err, out.Close())
	if err != nil {
		return errors.Join(err, c.to.Remove(temp))
	}
	return nil
}
