package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// heldTries is how often a new folder may be taken away by another start, which believes it to be left.
const heldTries = 10

// Held makes a folder whose name begins with the prefix, and which is locked as long as this process lives. Folders of
// the same prefix that nobody holds any more are removed first.
func Held(prefix string) (dir string, remove func() error, err error) {
	sweep(prefix)
	for range heldTries {
		if dir, err = os.MkdirTemp("", prefix); err != nil {
			return "", nil, fmt.Errorf("%w; TMPDIR names another place", err)
		}
		if remove, err = lockNew(dir); remove != nil || err != nil {
			return dir, remove, err
		}
	}
	return "", nil, errVanish()
}

// lockNew locks a folder that was just made; remove is nil when another start has taken it for one that is left.
func lockNew(dir string) (remove func() error, err error) {
	lock, err := hold(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if lock == nil {
		return nil, nil
	}
	return func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
}

func errVanish() error {
	return errors.New("temporary folders vanish as soon as they are made: is something cleaning " + os.TempDir() + "?")
}

// hold locks a folder; nil when somebody else has it, or when it is not there any more.
func hold(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	held, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Another start may have removed it between its making and its lock.
	if now, err := os.Lstat(dir); err != nil || !os.SameFile(held, now) {
		return nil, f.Close()
	}
	return f, nil
}

// sweep removes what processes that are no more have left. What cannot be removed, or a place that cannot be listed, is
// no reason to stop.
func sweep(prefix string) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(os.TempDir(), e.Name())
		if !strings.HasPrefix(e.Name(), prefix) || !ours(dir) {
			continue
		}
		lock, err := hold(dir)
		if err != nil || lock == nil {
			continue // it is in use, or vanishing
		}
		_, _ = os.RemoveAll(dir), lock.Close()
	}
}
