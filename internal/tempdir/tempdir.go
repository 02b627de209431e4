// Package tempdir creates folders in the system's temporary folder. Their names let a later ralph process find and remove
// those of one that was killed. Other users may share the temporary folder: their files are not used, followed or removed.
// Everything is safe for concurrent use.
package tempdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const runPrefix = "ralph-run-"

// runDir returns a short path: the folder contains a socket, whose path is limited to about 100 bytes.
func runDir(run string) string {
	sum := sha256.Sum256([]byte(run))
	return filepath.Join(os.TempDir(), runPrefix+hex.EncodeToString(sum[:6]))
}

// removeLeft waits this long for a Sweep that is removing the folder, in this many checks.
const (
	sweepTime = 2 * time.Second
	maxSwept  = 100
)

// ForRun creates the folder of a run, accessible only to this user, and removes what an earlier process left there. The
// folder is locked until remove is called, so that no Sweep removes it.
func ForRun(run string) (dir string, remove func() error, err error) {
	dir = runDir(run)
	for range heldTries {
		if err := removeLeft(dir); err != nil {
			return "", nil, err
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", nil, fmt.Errorf("%w; TMPDIR names another place", err)
		}
		if remove, err = lockNew(dir); remove != nil || err != nil {
			return dir, remove, err
		}
	}
	return "", nil, errVanish()
}

// removeLeft removes a run's folder of an earlier process. It waits for a concurrent Sweep of the folder, which would remove
// the new folder, too.
func removeLeft(dir string) error {
	for look := 0; ; look++ {
		if !isOwnFolder(dir) {
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return fmt.Errorf("%s is there already and not ours: remove it, or set TMPDIR to a folder that only you can write", dir)
		}
		lock, err := lockFolder(dir)
		switch {
		case lock != nil:
			return errors.Join(os.RemoveAll(dir), lock.Close())
		case err != nil || look == maxSwept:
			return os.RemoveAll(dir)
		}
		<-time.After(sweepTime / maxSwept)
	}
}

// Sweep removes folders of runs that no process holds, such as those that could not be removed when their runs ended.
func Sweep() { sweep(runPrefix) }

// RemoveRun removes the folder of a finished run, if TMPDIR has not changed since. A missing folder is not an error.
func RemoveRun(run string) error {
	dir := runDir(run)
	if !isOwnFolder(dir) {
		return nil
	}
	return os.RemoveAll(dir)
}

// isOwnFolder reports whether the path is a folder, not a link, that belongs to this user.
func isOwnFolder(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
