// Package trash deletes the folders of removed worktrees in the background. An agent can fill them so that this takes
// minutes.
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

// Bin is a folder of things to delete. Deletion runs in the background until it is complete or the process ends; the next
// process that calls Empty continues it. Several processes may share the folder.
type Bin struct {
	dir     string
	log     *slog.Logger
	maxWait time.Duration      // how long Put waits, so that usually nothing is left; Empty waits a tenth of it
	remove  func(string) error // deletes a folder

	freeing atomic.Int64 // number of deletions in progress
}

// New returns the bin in an existing folder.
func New(dir string, log *slog.Logger) *Bin {
	return &Bin{dir: dir, log: log, maxWait: 10 * time.Second, remove: disk.RemoveAll}
}

// Put moves folders, which need not exist, into the bin and begins to delete them. It moves each by one rename, so that
// nobody takes a half-deleted folder for a complete one.
func (b *Bin) Put(name string, folders ...string) error {
	var moved []string
	defer func() { b.delete(moved, b.maxWait) }()
	for _, from := range folders {
		to := filepath.Join(b.dir, name+"-"+rand.Text())
		_ = os.Mkdir(b.dir, 0o700) // somebody may have deleted it
		_ = disk.Unlock(from)      // without write permission its ".." cannot change
		err := os.Rename(from, to)
		if err == nil {
			moved = append(moved, to)
		} else if _, there := os.Lstat(from); !errors.Is(there, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", from, err)
		}
	}
	return nil
}

// Empty begins to delete what earlier processes have left, unless a deletion is running.
func (b *Bin) Empty() {
	if b.Freeing() {
		return
	}
	entries, _ := os.ReadDir(b.dir) // an unreadable folder has nothing to remove
	var left []string
	for _, e := range entries {
		left = append(left, filepath.Join(b.dir, e.Name()))
	}
	b.delete(left, b.maxWait/10)
}

// Freeing reports whether a deletion is running, so that disk space will be freed.
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
