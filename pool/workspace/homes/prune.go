package homes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/filelock"
)

// Prune removes what a crash left, and then unused homes, the least recently used first, until all together take at most this
// many bytes. It needs only the fields Dir and Log.
func (h *Store) Prune(ctx context.Context, most int64) {
	for _, half := range disk.Newest(h.Dir, func(name string) bool { return strings.Contains(name, ".") }) {
		name, _, _ := strings.Cut(half.Name(), ".")
		h.drop(ctx, name, half.Name())
	}
	var all int64
	for _, home := range h.latest() {
		if all += disk.Measure(ctx, h.Dir, filepath.Join(h.Dir, home.Name())).Bytes; all > most {
			h.drop(ctx, home.Name(), home.Name())
		}
	}
}

// drop removes a folder unless the home is in use.
func (h *Store) drop(ctx context.Context, name, folder string) {
	lock, err := h.lock(ctx, name, filelock.Try)
	if err != nil {
		return
	}
	err = h.remove(name, folder)
	// The lock file stays: a process that has opened it must lock the same file as all others.
	if err := errors.Join(err, lock.Close()); err != nil {
		h.Log.Warn("remove a home that setup has filled", "error", err)
	}
}

// remove removes a folder of a home that is locked.
func (h *Store) remove(name, folder string) error {
	gone := filepath.Join(h.Dir, folder)
	if folder == name { // a partly removed home must not be found under its name
		gone += ".old"
		if err := errors.Join(disk.RemoveAll(gone), os.Rename(filepath.Join(h.Dir, name), gone)); err != nil {
			return err
		}
	}
	return disk.RemoveAll(gone)
}
