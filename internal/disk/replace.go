package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file of a folder that hostile programs may write to, in the place of whatever has the name. It follows no
// link, and the file is of the folder's owner. When another program makes the name meanwhile it fails.
func Replace(folder, name string, content []byte, mode fs.FileMode) error {
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
