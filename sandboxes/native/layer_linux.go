package native

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// Places, while the root is built, of the worktree's lower folders and of its parent folder. They sort before the worktree
// in the list of what is shown.
const (
	lowerPlace = "/.lower"
	setupPlace = "/.setup"
	upperPlace = "/.upper"
)

// changesPlace is the path inside of the worktree's upper folder, read-only.
const changesPlace = "/.changes"

// workName is overlayfs's work folder beside the worktree: both must be in one mount.
const workName = "work"

// addLower adds the lower folders of the worktree.
func (p *plan) addLower(spec sandboxes.Spec) error {
	for _, lower := range []struct{ name, host, place string }{
		{"folder of setup", spec.Setup, setupPlace}, {"lower folder", spec.Lower, lowerPlace},
	} {
		if lower.host == "" {
			continue
		}
		if _, err := supervisor.CheckFolder(lower.name, lower.host); err != nil {
			return err
		}
		p.Lower = append(p.Lower, lower.place)
		p.Shown = append(p.Shown, shown{Host: lower.host, Inside: lower.place})
	}
	if len(p.Lower) == 0 {
		return nil
	}
	parent, name := filepath.Split(spec.Worktree)
	if name == workName || strings.ContainsAny(name, `\,:`) {
		return fmt.Errorf("worktree %s: its name cannot be that of an upper folder", spec.Worktree)
	}
	if err := os.Mkdir(filepath.Join(parent, workName), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	p.Shown = append(p.Shown, shown{Host: filepath.Clean(parent), Inside: upperPlace, Write: true})
	return nil
}

// isLayeredTree reports whether s is the worktree and has lower folders.
func (p *plan) isLayeredTree(s shown) bool { return len(p.Lower) > 0 && s.Inside == p.Workdir }

// ownTree changes the owner of the worktree's files to the sandbox's user, once: an overlay cannot be an id-mapped mount.
// Before that, only the host has written there.
func (p *plan) ownTree(who identity) error {
	if len(p.Lower) == 0 || !who.root {
		return nil
	}
	parent := filepath.Dir(p.Worktree)
	if uid, gid, err := owner(parent); err != nil || uid == who.hostUID && gid == who.hostGID {
		return err
	}
	own := func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != parent {
			err = os.Lchown(path, who.hostUID, who.hostGID)
		}
		return err
	}
	if err := filepath.WalkDir(parent, own); err != nil {
		return err
	}
	return os.Lchown(parent, who.hostUID, who.hostGID) // last: marks the change as complete
}

// layTree mounts the worktree over its lower folders.
func (p *plan) layTree(write bool) error {
	if err := makePlace(p.Workdir, false); err != nil {
		return err
	}
	// The kernel would allow the same upper folder in two sandboxes. This process holds the lock until it ends.
	lock, err := unix.Open(upperPlace, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Flock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another sandbox is using it: %w", err)
	}
	upper, work := filepath.Join(upperPlace, filepath.Base(p.Worktree)), filepath.Join(upperPlace, workName)
	if err := overlay(p.Workdir, strings.Join(p.Lower, ":"), upper, work); err != nil {
		return fmt.Errorf("mount it over its lower folders: %w", err)
	}
	if !write {
		if err := unix.MountSetattr(unix.AT_FDCWD, p.Workdir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make it read-only: %w", err)
		}
	}
	if err := showChanges(upper); err != nil {
		return err
	}
	for _, place := range append(p.Lower, upperPlace) {
		if err := removeMount(place); err != nil {
			return err
		}
	}
	return nil
}

// showChanges shows the upper folder itself.
func showChanges(upper string) error {
	mount, err := copyMount(upper)
	if err != nil {
		return err
	}
	defer func() { _ = mount.Close() }()
	return place(int(mount.Fd()), shown{Inside: changesPlace})
}

// layers caches the results of trying layers by file system.
type layers struct {
	mu    sync.Mutex
	tried map[uint64]error // guarded by mu; by device
}

// Layers tests a worktree over a lower folder, once for each file system.
func (p *Provider) Layers(ctx context.Context, dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	p.layers.mu.Lock()
	defer p.layers.mu.Unlock()
	err, known := p.layers.tried[st.Dev]
	if known {
		return err
	}
	if err = p.tryLayer(ctx, dir); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.layers.tried == nil {
		p.layers.tried = make(map[uint64]error)
	}
	p.layers.tried[st.Dev] = err
	return err
}

// tryLayer performs the operations on a lower folder that overlayfs does not support on every file system where it mounts.
func (p *Provider) tryLayer(ctx context.Context, dir string) (err error) {
	at := filepath.Join(dir, "try-layer-"+rand.Text())
	defer func() { err = errors.Join(err, disk.RemoveAll(at)) }()
	lower, upper := filepath.Join(at, "lower"), filepath.Join(at, "tree", "files")
	if err := errors.Join(os.MkdirAll(filepath.Join(lower, "folder"), 0o700), os.MkdirAll(upper, 0o700)); err != nil {
		return err
	}
	for _, name := range []string{"folder/file", "file", "hidden"} {
		if err := os.WriteFile(filepath.Join(lower, name), []byte("lower"), 0o600); err != nil {
			return err
		}
	}
	if err := unix.Mknod(filepath.Join(upper, "hidden"), unix.S_IFCHR, 0); err != nil {
		return fmt.Errorf("this user can make no whiteouts there: %w", err)
	}
	box, err := p.Open(ctx, sandboxes.Spec{Run: filepath.Base(at), Worktree: upper, Lower: lower})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close(context.WithoutCancel(ctx))) }()
	const script = `set -e; test ! -e hidden; test -f folder/file; rm -r folder; mkdir folder; test ! -e folder/file; chmod 700 file; echo upper >file`
	tail := proc.NewTail(1 << 10)
	exit, err := box.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", script}, Stdout: tail, Stderr: tail})
	if err == nil && !exit.OK() {
		err = fmt.Errorf("overlayfs does not work on the file system of %s: %s", dir, strings.TrimSpace(tail.String()))
	}
	return err
}
