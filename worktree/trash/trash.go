// Package trash deletes the folders of removed worktrees. An agent can make so many that this takes minutes, for which nobody waits.
package trash

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
)

// Bin is a folder for what is to be deleted. Deletion goes on beside the caller until it is done or the process ends; then the next
// process that calls Empty goes on. Several processes may use one folder.
type Bin struct {
	dir    string
	log    *slog.Logger
	wait   time.Duration      // for which Put waits, so that most of the time nothing is left; Empty waits a tenth of it
	remove func(string) error // deletes a folder

	freeing atomic.Int64 // deletions that are not done
}

// New returns the bin in a folder, which exists.
func New(dir string, log *slog.Logger) *Bin {
	return &Bin{dir: dir, log: log, wait: 10 * time.Second, remove: disk.RemoveAll}
}

// Put takes folders, which need not exist, out of their place, and begins to delete them. Each leaves its place by one rename, so
// that half of it is never taken for the whole.
func (b *Bin) Put(name string, folders ...string) error {
	var moved []string
	defer func() { b.delete(moved, b.wait) }()
	for _, from := range folders {
		to := filepath.Join(b.dir, name+"-"+rand.Text())
		_ = os.Mkdir(b.dir, 0o700) // it may have been deleted
		err := os.Rename(from, to)
		if errors.Is(err, fs.ErrPermission) && os.Chmod(from, 0o700) == nil { // without rights its ".." cannot change
			err = os.Rename(from, to)
		}
		if err == nil {
			moved = append(moved, to)
		} else if _, there := os.Lstat(from); !errors.Is(there, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", from, err)
		}
	}
	return nil
}

// Empty begins to delete what earlier processes have left, unless a deletion goes on.
func (b *Bin) Empty() {
	if b.Freeing() {
		return
	}
	entries, _ := os.ReadDir(b.dir) // what cannot be read has nothing to remove
	var left []string
	for _, e := range entries {
		left = append(left, filepath.Join(b.dir, e.Name()))
	}
	b.delete(left, b.wait/10)
}

// Freeing reports whether something is still being deleted, so that there will be more room.
func (b *Bin) Freeing() bool { return b.freeing.Load() > 0 }

func (b *Bin) delete(folders []string, wait time.Duration) {
	if len(folders) == 0 {
		return
	}
	done := make(chan struct{})
	b.freeing.Add(1)
	go func() {
		defer close(done)
		defer b.freeing.Add(-1)
		for _, dir := range folders {
			if err := b.remove(dir); err != nil { // nothing depends on it any more
				b.log.Warn("removed worktree is still on disk", "path", dir, "error", err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(wait):
	}
}
