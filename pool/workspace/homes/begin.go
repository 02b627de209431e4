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

// kindFile is in the folder of a home and names everything but the base's files that the home depends on.
const kindFile = "kind"

// kind is the content of kindFile.
func (h *Store) kind(ctx context.Context) string {
	key, _ := h.key(ctx) // it has just been asked
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", h.For, key))
	return hex.EncodeToString(sum[:])
}

// Begin gives a new home the caches of the latest one of its kind: when the base moves, nothing is fetched again that its files
// still name. Only setup on a base has written there, before any agent. Without them, setup does the same and takes longer.
func (f *Filling) Begin(ctx context.Context) {
	if f.h.Keyer != nil {
		return // its files may be another user's
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

// copyCaches copies those that leave room for as much again.
func (f *Filling) copyCaches(ctx context.Context, from string) (err error) {
	to := f.Home()
	var caches, folders []string
	for _, name := range toolchain.Caches() {
		if info, err := os.Lstat(filepath.Join(from, name)); err == nil && info.IsDir() {
			caches, folders = append(caches, name), append(folders, filepath.Join(from, name))
		}
	}
	if len(caches) == 0 || disk.Measure(ctx, f.h.Dir, folders...).Bytes > f.h.Most/2 {
		return nil
	}
	if err = filecopy.Copy(ctx, from, to, caches, nil, filecopy.AnyLink); err != nil {
		err = errors.Join(err, disk.RemoveAll(to), os.Mkdir(to, 0o700))
	}
	return err
}

// latest are all homes, the last used first. The name of one that is not whole has a dot.
func (h *Store) latest() []fs.FileInfo {
	return disk.Newest(h.Dir, func(name string) bool { return !strings.Contains(name, ".") })
}
