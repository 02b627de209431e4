package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file in a folder that hostile programs may write to, and replaces any entry of that name. It follows no
// links, and restores the permissions of the folder. The file belongs to the folder's owner. Replace fails if another program
// creates the name meanwhile.
func Replace(folder, name string, content []byte, mode fs.FileMode) error {
	if err := Unlock(folder); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := RemoveAll(filepath.Join(folder, name)); err != nil {
		return err
	}
	if err := create(root, name, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(folder, name), cause(err))
	}
	return nil
}

func create(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		err = errors.Join(err, f.Chown(int(st.Uid), int(st.Gid)))
	}
	return errors.Join(err, f.Close())
}
