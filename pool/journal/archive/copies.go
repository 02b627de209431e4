package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
)

// Copies stores unpacked copies on this machine. It keeps those used most recently.
type Copies struct {
	Dir  string // made if missing
	Most int    // maximum number of folders
}

// making is the name prefix of incomplete folders.
const making = ".making-"

// Get returns the folder of a run's copy. If the copy is not here, Get calls fetch, which returns nil if there is none;
// then dir is empty.
func (c Copies) Get(run string, fetch func() ([]byte, error)) (dir string, err error) {
	if run != filepath.Base(run) || !filepath.IsLocal(run) {
		return "", fmt.Errorf("%q is not a run", run)
	}
	dir = filepath.Join(c.Dir, run)
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err == nil {
		return dir, nil
	}
	content, err := fetch()
	if err != nil || content == nil {
		return "", err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(c.Dir, making)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	if err := Unpack(content, made); err != nil {
		return "", err
	}
	if err := os.Rename(made, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another request may have been faster
		return "", err
	}
	return dir, c.prune()
}

// prune removes the least recently used folders, and incomplete ones of crashed processes.
func (c Copies) prune() (err error) {
	folders := disk.Newest(c.Dir, func(string) bool { return true })
	for _, f := range folders[min(c.Most, len(folders)):] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(c.Dir, f.Name())))
	}
	return err
}
