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

// sweepTime is more than a Sweep needs for one folder.
const sweepTime = 200 * time.Millisecond

// ForRun makes the folder of a run, which only this user may enter. What is left of an earlier one is removed. Until remove is
// called it is locked, so that no Sweep takes it.
func ForRun(run string) (dir string, remove func() error, err error) {
	dir = runDir(run)
	for n := range heldTries {
		err = os.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			if !ours(dir) {
				return "", nil, fmt.Errorf("%s is there already and not ours: remove it, or set TMPDIR to a folder that only you can write", dir)
			}
			old, held := hold(dir)
			if old == nil && held == nil && n < heldTries-1 { // a Sweep that is removing it would remove the new one, too
				<-time.After(sweepTime / heldTries)
				continue
			}
			if err = os.RemoveAll(dir); err == nil {
				err = os.Mkdir(dir, 0o700)
			}
			if old != nil {
				err = errors.Join(err, old.Close())
			}
		}
		if err != nil {
			return "", nil, err
		}
		lock, err := hold(dir)
		if err != nil {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
		if lock != nil {
			return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
		}
	}
	return "", nil, errVanish()
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
