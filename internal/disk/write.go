package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// TempPrefix begins the names of incomplete files of WriteFile and WriteTemp. Only the death of their process leaves one.
const TempPrefix = ".ralph-new-"

// Durability says what a file survives.
type Durability int

const (
	// Process: after the death of the process the file is complete, old or new. After a power loss it may be empty.
	Process Durability = iota
	// Power: after a power loss, too, the file is complete, and it is the new one if the function has returned.
	Power
)

// WriteFile replaces the file at path, or creates it. Others always read a complete file. A link at path is replaced, not
// followed. The file has exactly this mode.
func WriteFile(path string, content []byte, mode fs.FileMode, d Durability) error {
	temp, err := WriteTemp(filepath.Dir(path), content, mode, d)
	if err != nil {
		return err
	}
	return Install(temp, path, d)
}

// WriteTemp writes a file of a new name into the folder, for Install or os.Link.
func WriteTemp(folder string, content []byte, mode fs.FileMode, d Durability) (path string, err error) {
	f, err := os.CreateTemp(folder, TempPrefix)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode))
	if err == nil && d == Power {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// Install moves a file of WriteTemp to a path on the same file system, and replaces what is there. If that fails, it removes
// the file.
func Install(temp, path string, d Durability) error {
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if d != Power {
		return nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
