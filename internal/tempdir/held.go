package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/filelock"
)

// heldTries is the maximum number of attempts to create a folder. Another process may remove a new one as stale.
const heldTries = 10

// Held creates a folder with the prefix and locks it until the process ends or remove is called. First it removes folders
// with that prefix that no process holds.
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

// lockNew locks a new folder. remove is nil if another process has removed the folder as stale.
func lockNew(dir string) (remove func() error, err error) {
	lock, err := lockFolder(dir)
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

// lockFolder locks a folder. It returns nil if another process holds it or it no longer exists.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if locked, err := filelock.Try(f); !locked {
		return nil, errors.Join(err, f.Close())
	}
	held, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Another process may have removed it after it was created and before it was locked.
	if now, err := os.Lstat(dir); err != nil || !os.SameFile(held, now) {
		return nil, f.Close()
	}
	return f, nil
}

// sweep removes folders whose processes have ended. It ignores errors, because stale folders do no harm.
func sweep(prefix string) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(os.TempDir(), e.Name())
		if !strings.HasPrefix(e.Name(), prefix) || !isOwnFolder(dir) {
			continue
		}
		lock, err := lockFolder(dir)
		if err != nil || lock == nil {
			continue // it is in use, or vanishing
		}
		_, _ = os.RemoveAll(dir), lock.Close()
	}
}
