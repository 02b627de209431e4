// Package tempdir makes folders in the system's temporary folder, with names by which a later start of ralph finds and
// removes those of a ralph that was killed. Other users may share that folder: their files are not used, followed or
// removed. Everything is safe for concurrent use.
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

// runDir is short: it holds a socket, whose path may have about 100 bytes.
func runDir(run string) string {
	sum := sha256.Sum256([]byte(run))
	return filepath.Join(os.TempDir(), runPrefix+hex.EncodeToString(sum[:6]))
}

// A Sweep that is removing a folder gets this long for it, in so many looks.
const (
	sweepTime  = 2 * time.Second
	sweepLooks = 100
)

// ForRun makes the folder of a run, which only this user may enter. What is left of an earlier one is removed. Until remove is
// called it is locked, so that no Sweep takes it.
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

// removeLeft removes what an earlier process has left of a run's folder. It waits for a Sweep that does the same, because that would
// remove the new folder, too.
func removeLeft(dir string) error {
	for look := 0; ; look++ {
		if !ours(dir) {
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return fmt.Errorf("%s is there already and not ours: remove it, or set TMPDIR to a folder that only you can write", dir)
		}
		lock, err := hold(dir)
		switch {
		case lock != nil:
			return errors.Join(os.RemoveAll(dir), lock.Close())
		case err != nil || look == sweepLooks:
			return os.RemoveAll(dir)
		}
		<-time.After(sweepTime / sweepLooks)
	}
}

// Sweep removes the folders of runs that no process has any more, such as those that could not be removed when the run ended.
func Sweep() { sweep(runPrefix) }

// RemoveRun removes the folder of a run that is over; it is found as long as TMPDIR is what it was. It is no error if
// there is none.
func RemoveRun(run string) error {
	dir := runDir(run)
	if !ours(dir) {
		return nil
	}
	return os.RemoveAll(dir)
}

// ours reports whether the path is a folder, and no link, that this user has made.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
