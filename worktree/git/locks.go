package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/internal/retry"
)

// Git locks a ref only briefly: a lock file that is older than lockAge, and does not change for lockRest, is from a git that was
// killed. lockRest is for clocks that have jumped, and for a machine that has slept.
const (
	lockSuffix = ".lock"
	lockAge    = 10 * time.Second
	lockRest   = 2 * time.Second
	lockPause  = 20 * time.Millisecond // between two looks
)

// ownedRefs describes the refs that only this program moves.
type ownedRefs struct {
	prefixes []string
	moving   string // path of a file that each process of this program locks, shared, while it moves such refs
	sleep    func(ctx context.Context, d time.Duration) error
}

// WithOwnedRefs sets the prefixes, such as "refs/x/", of refs that only this program moves. A lock file of such a ref that was left
// by a killed git is removed by MoveRefs. It is one if it is old, and if no process that shares the file at moving is moving refs.
// sleep may be nil.
func (g Runner) WithOwnedRefs(moving string, sleep func(context.Context, time.Duration) error, prefixes ...string) Runner {
	if sleep == nil {
		sleep = retry.Sleep
	}
	g.ownedRefs = ownedRefs{prefixes, moving, sleep}
	return g
}

// StaleLocks lists the lock files on the owned refs that are likely to be from a killed git.
func (g Runner) StaleLocks() ([]string, error) {
	var stale []string
	for _, prefix := range g.ownedRefs.prefixes {
		root := filepath.Join(g.common, filepath.FromSlash(prefix))
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, lockSuffix) {
				if info, err := d.Info(); err == nil && time.Since(info.ModTime()) >= lockAge {
					stale = append(stale, path)
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look for stale locks: %w", err)
		}
	}
	return stale, nil
}

// FreeLock removes a lock file of an owned ref if it is from a killed git. It waits until it knows, or until the file has gone.
func (g Runner) FreeLock(ctx context.Context, path string) error {
	first, err := os.Lstat(path)
	if err != nil || !first.Mode().IsRegular() {
		return nil //nolint:nilerr // there is none
	}
	for watched := time.Duration(0); watched <= lockAge+lockRest; watched += lockPause {
		if now, err := os.Lstat(path); err != nil || !sameFile(first, now) {
			return nil //nolint:nilerr // a living git has removed it, and perhaps another one has the next
		}
		if watched >= lockAge || watched >= lockRest && time.Since(first.ModTime()) >= lockAge {
			if removed, err := g.removeLock(path, first); removed || err != nil {
				return err
			}
		}
		if err := g.ownedRefs.sleep(ctx, lockPause); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s", ErrLocked, path)
}

// removeLock removes a lock file unless a process may be moving refs.
func (g Runner) removeLock(path string, first fs.FileInfo) (removed bool, err error) {
	f, err := os.OpenFile(g.ownedRefs.moving, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		defer func() { _ = f.Close() }()
		if alone, err := filelock.Try(f); !alone || err != nil {
			return false, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) { // see beginMove
		return false, err
	}
	if now, err := os.Lstat(path); err != nil || !sameFile(first, now) {
		return true, nil // it has gone
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("remove stale lock: %w", err)
	}
	return true, nil
}

func sameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }

// beginMove frees owned refs of the edits from stale locks, and tells other processes that refs are being moved.
func (g Runner) beginMove(ctx context.Context, edits []Edit) (end func(), err error) {
	owned := false
	for _, e := range edits {
		if slices.ContainsFunc(g.ownedRefs.prefixes, func(prefix string) bool { return strings.HasPrefix(e.Ref, prefix) }) {
			owned = true
			if err := g.FreeLock(ctx, filepath.Join(g.common, filepath.FromSlash(e.Ref))+lockSuffix); err != nil {
				return nil, err
			}
		}
	}
	if owned {
		end, err = filelock.LockShared(ctx, g.ownedRefs.moving)
	}
	if !owned || errors.Is(err, fs.ErrNotExist) { // the lock's folder was lost: nobody else looks there
		return func() {}, nil
	}
	return end, err
}
