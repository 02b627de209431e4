package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// Homes are homes that setup has filled on a base, before any agent: what it fetched and built there is warm in every
// sandbox after that. A home is written once, by nothing but setup commands, and never again. It is a cache: a missing one
// only means that a sandbox starts with an empty home. Homes are safe for concurrent use, also by several processes.
type Homes struct {
	// Dir is where they are. Most is how many bytes all of them may take; the least recently used go first.
	Dir  string
	Most int64
	// For is what they depend on besides the base's own files, such as the setup commands.
	For string
	// Keyer tells what else they depend on; nil: nothing.
	Keyer sandboxes.HomeKeyer
	// Inputs are the base's files and folders that they depend on, as paths from the top; none: the build files there.
	Inputs []string
	Repo   *worktree.Repo
	Log    *slog.Logger

	mu    sync.Mutex
	names map[string]string // guarded by mu; by base commit and key
}

// name is the home for a base: it depends on the files that say what is fetched and built. It is empty when there can be none.
func (h *Homes) name(ctx context.Context, commit string) (string, error) {
	key := "any"
	if h.Keyer != nil {
		var err error
		if key, err = h.Keyer.HomeKey(ctx); err != nil || key == "" {
			return "", err
		}
	}
	at := commit + " " + key
	h.mu.Lock()
	known := h.names[at]
	h.mu.Unlock()
	if known != "" {
		return known, nil
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s %q\n%s\n", h.For, h.Inputs, key)
	args := []string{"-c", "core.quotePath=false", "ls-tree", "--full-tree"}
	if len(h.Inputs) > 0 {
		args = append(args, "-r")
	}
	args = append(append(args, commit, "--"), h.Inputs...)
	err := h.Repo.Git().Lines(ctx, func(line []byte) {
		_, file, _ := strings.Cut(string(line), "\t")
		if role, _ := ecosystem.RoleOf(file, nil); len(h.Inputs) > 0 || role == ecosystem.Build {
			_, _ = fmt.Fprintf(sum, "%s\n", line)
		}
	}, args...)
	if err != nil {
		return "", err
	}
	known = hex.EncodeToString(sum.Sum(nil)[:16])
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names == nil {
		h.names = map[string]string{}
	}
	h.names[at] = known
	return known, nil
}

// use is the home for a base, until done is called; empty when there is none.
func (h *Homes) use(ctx context.Context, commit string) (dir string, done func()) {
	name, err := h.name(ctx, commit)
	if err != nil || name == "" {
		return "", nil
	}
	dir = filepath.Join(h.Dir, name)
	if _, err := os.Lstat(dir); err != nil {
		return "", nil
	}
	lock, err := h.lock(ctx, name, unix.LOCK_SH)
	if err != nil {
		return "", nil // it is being removed
	}
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil { // it has been removed
		_ = lock.Close()
		return "", nil
	}
	return dir, func() { _ = lock.Close() }
}

// lock waits for a moment only.
func (h *Homes) lock(ctx context.Context, name string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(h.Dir, name+".lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	// A process that has just been forked has all open files, and with them their locks, until it becomes another program.
	for range lockTries {
		if err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPause):
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

const (
	lockTries = 50
	lockPause = 5 * time.Millisecond
)

// filling is a home that is being filled.
type filling struct {
	h    *Homes
	name string
	dir  string
	lock *os.File
}

// fill begins a home for a base; nil when there is one, or somebody else is at it.
func (h *Homes) fill(ctx context.Context, commit string) (*filling, error) {
	if h == nil || h.Most <= 0 {
		return nil, nil
	}
	name, err := h.name(ctx, commit)
	if err != nil || name == "" {
		return nil, err
	}
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := h.lock(ctx, name, unix.LOCK_EX)
	if err != nil {
		return nil, nil //nolint:nilerr // somebody uses or fills it
	}
	f := &filling{h: h, name: name, dir: filepath.Join(h.Dir, name+".new"), lock: lock}
	if _, err := os.Lstat(filepath.Join(h.Dir, name)); err == nil {
		return nil, lock.Close()
	}
	err = disk.RemoveAll(f.dir) // a crash left it
	if err == nil {
		err = os.Mkdir(f.dir, 0o700)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// end keeps the home, or drops it.
func (f *filling) end(ctx context.Context, keep bool) {
	if f == nil {
		return
	}
	var err error
	if keep = keep && disk.Measure(ctx, f.h.Dir, f.dir).Bytes <= f.h.Most; keep {
		now := time.Now() // it is the last that goes
		err = errors.Join(os.Chtimes(f.dir, now, now), os.Rename(f.dir, filepath.Join(f.h.Dir, f.name)))
	} else {
		err = disk.RemoveAll(f.dir)
	}
	if err := errors.Join(err, f.lock.Close()); err != nil {
		f.h.Log.Warn("keep the home that setup has filled", "error", err)
	}
	if keep {
		f.h.Prune(ctx, f.h.Most)
	}
}

// Prune removes what a crash left, and homes that nobody uses, the least recently used first, until all together take no more
// than so many bytes. It only needs Dir and Log.
func (h *Homes) Prune(ctx context.Context, most int64) {
	type kept struct {
		name  string
		used  time.Time
		bytes int64
	}
	entries, err := os.ReadDir(h.Dir)
	if err != nil {
		return
	}
	var homes []kept
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() {
			continue
		}
		if name, _, half := strings.Cut(e.Name(), "."); half {
			h.drop(ctx, name, e.Name())
			continue
		}
		homes = append(homes, kept{e.Name(), info.ModTime(), disk.Measure(ctx, h.Dir, filepath.Join(h.Dir, e.Name())).Bytes})
	}
	slices.SortFunc(homes, func(a, b kept) int { return b.used.Compare(a.used) })
	var all int64
	for _, k := range homes {
		if all += k.bytes; all > most {
			h.drop(ctx, k.name, k.name)
		}
	}
}

// drop removes a folder unless somebody uses the home.
func (h *Homes) drop(ctx context.Context, name, folder string) {
	lock, err := h.lock(ctx, name, unix.LOCK_EX)
	if err != nil {
		return
	}
	gone := filepath.Join(h.Dir, folder)
	if folder == name { // half of it must not be found under its name
		gone += ".old"
		err = errors.Join(disk.RemoveAll(gone), os.Rename(filepath.Join(h.Dir, name), gone))
	}
	if err == nil {
		err = disk.RemoveAll(gone)
	}
	// The lock's file stays: whoever has opened it locks the same one as all others.
	if err := errors.Join(err, lock.Close()); err != nil {
		h.Log.Warn("remove a home that setup has filled", "error", err)
	}
}
