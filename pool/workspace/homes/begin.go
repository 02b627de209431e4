package homes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/toolchain"
	"github.com/ralph-pool/ralph/worktree/filecopy"
)

// kindFile is the file in the folder of a home that names everything that the home depends on, except the files of the base.
const kindFile = "kind"

// kind returns the content of kindFile.
func (h *Store) kind(ctx context.Context) string {
	key, _ := h.key(ctx) // the caller has just called key
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", h.For, key))
	return hex.EncodeToString(sum[:])
}

// Begin copies the caches of the latest home of the same kind into a new one, so that after a move of the base setup fetches only
// what has changed. Only setup on a base has written them, before any agent. Without them setup does the same, but takes longer.
func (f *Filling) Begin(ctx context.Context) {
	if f.h.Keyer != nil {
		return // the files may belong to another user
	}
	for _, home := range f.h.latest() {
		name := home.Name()
		kind, err := os.ReadFile(filepath.Join(f.h.Dir, name, kindFile))
		if err != nil || string(kind) != f.kind {
			continue
		}
		from := f.h.open(ctx, homeName{name: name})
		if from == nil {
			continue
		}
		err = f.copyCaches(ctx, from.Dir())
		from.Done()
		if err != nil && ctx.Err() == nil {
			f.h.Log.Warn("setup fetches everything again", "reason", err)
		}
		return
	}
}

// copyCaches copies the caches if they leave room for as much again.
func (f *Filling) copyCaches(ctx context.Context, from string) (err error) {
	to := f.Home()
	var caches, folders []string
	for _, name := range toolchain.Caches() {
		if info, err := os.Lstat(filepath.Join(from, name)); err == nil && info.IsDir() {
			caches, folders = append(caches, name), append(folders, filepath.Join(from, name))
		}
	}
	if len(caches) == 0 || disk.Measure(ctx, f.h.Dir, folders...).Bytes > f.h.MaxBytes/2 {
		return nil
	}
	if err = filecopy.Copy(ctx, from, to, caches, nil, filecopy.AnyLink); err != nil {
		err = errors.Join(err, disk.RemoveAll(to), os.Mkdir(to, 0o700))
	}
	return err
}

// latest returns all homes, the most recently used first. The name of an incomplete one has a dot.
func (h *Store) latest() []fs.FileInfo {
	return disk.Newest(h.Dir, func(name string) bool { return !strings.Contains(name, ".") })
}
