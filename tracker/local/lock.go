package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/filelock"
)

const hiddenLock = ".ralph.lock"

// lock waits until no other goroutine or process writes in the folder. The kernel releases the lock of a dead process.
func (t *Tracker) lock(ctx context.Context) (unlock func(), err error) {
	f, err := t.lockFile()
	if err == nil {
		if err = filelock.Wait(ctx, f); err == nil {
			return func() { f.Close() }, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("lock %s: %w", t.cfg.Dir, err)
}

// lockFile opens the lock file. It is never removed: a lock on a removed file would exclude nobody.
func (t *Tracker) lockFile() (*os.File, error) {
	if t.cfg.LockDir == "" {
		root, err := os.OpenRoot(t.dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		f, err := root.OpenFile(hiddenLock, os.O_RDWR|os.O_CREATE, 0o644)
		if errors.Is(err, fs.ErrPermission) { // created by another user; read access suffices to lock it
			return root.Open(hiddenLock)
		}
		return f, err
	}
	dir := t.dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // one lock for all paths to the folder
	}
	if err := os.MkdirAll(t.cfg.LockDir, 0o700); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(dir))
	name := "backlog-" + hex.EncodeToString(sum[:8]) + ".lock"
	return os.OpenFile(filepath.Join(t.cfg.LockDir, name), os.O_RDWR|os.O_CREATE, 0o600)
}
