// Package reflock removes the locks that killed gits have left on refs.
package reflock

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
)

// Git locks a ref only briefly: a lock file that is older than Age, and does not change for Rest, is from a git that was
// killed. Rest is for clocks that have jumped, and for a machine that has slept.
const (
	suffix    = ".lock"
	Age       = 10 * time.Second
	Rest      = 2 * time.Second
	Pause     = 20 * time.Millisecond // between two looks
	PackedAge = time.Minute           // instead of Age for packed-refs, which git locks for longer
)

// ErrLocked means that another program holds the lock of a ref all the time.
var ErrLocked = errors.New("another git process holds the lock of a ref; wait for it, or end it")

// Owned describes the refs of a repository that only this program moves.
type Owned struct {
	Common   string // the git directory
	Prefixes []string
	Moving   string // path of a file that each process of this program locks, shared, while it moves such refs
	Sleep    func(ctx context.Context, d time.Duration) error
}

// packedLock returns the path of the lock that git takes to delete a ref. Programs of the user's take it, too.
func (o Owned) packedLock() string { return filepath.Join(o.Common, "packed-refs"+suffix) }

// packing reports whether a git writes packed-refs anew.
func (o Owned) packing() bool {
	next := filepath.Join(o.Common, "packed-refs.new")
	_, err := os.Lstat(next)
	return err == nil && !isOlder(next, PackedAge)
}

// isOlder reports whether a file exists and has not changed for this time.
func isOlder(path string, age time.Duration) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) >= age
}

// Stale lists the lock files on the owned refs, and on packed-refs, that are likely to be from a killed git.
func (o Owned) Stale() ([]string, error) {
	var stale []string
	if lock := o.packedLock(); isOlder(lock, PackedAge) && !o.packing() {
		stale = append(stale, lock)
	}
	for _, prefix := range o.Prefixes {
		root := filepath.Join(o.Common, filepath.FromSlash(prefix))
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, suffix) && isOlder(path, Age) {
				stale = append(stale, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look for stale locks: %w", err)
		}
	}
	return stale, nil
}

// Free removes a lock file of an owned ref or of packed-refs if it is from a killed git. It waits until it knows, or until the file has gone.
func (o Owned) Free(ctx context.Context, path string) error {
	first, err := os.Lstat(path)
	if err != nil || !first.Mode().IsRegular() {
		return nil //nolint:nilerr // there is none
	}
	if path == o.packedLock() && (!isOlder(path, PackedAge) || o.packing()) {
		return nil // git itself waits for it
	}
	for watched := time.Duration(0); watched <= Age+Rest; watched += Pause {
		if now, err := os.Lstat(path); err != nil || !sameFile(first, now) {
			return nil //nolint:nilerr // a living git has removed it, and perhaps another one has the next
		}
		if watched >= Age || watched >= Rest && time.Since(first.ModTime()) >= Age {
			if removed, err := o.remove(path, first); removed || err != nil {
				return err
			}
		}
		if err := o.Sleep(ctx, Pause); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s", ErrLocked, path)
}

// remove removes a lock file unless a process may be moving refs.
func (o Owned) remove(path string, first fs.FileInfo) (removed bool, err error) {
	f, err := os.OpenFile(o.Moving, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		defer func() { _ = f.Close() }()
		if alone, err := filelock.Try(f); !alone || err != nil {
			return false, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) { // see BeginMove
		return false, err
	}
	if now, err := os.Lstat(path); err != nil || !sameFile(first, now) {
		return true, nil // it has gone
	}
	if path == o.packedLock() {
		_ = os.Remove(strings.TrimSuffix(path, suffix) + ".new") // of the same git; the next one fails if it is there
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("remove stale lock: %w", err)
	}
	return true, nil
}

func sameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }

// BeginMove frees those of the refs that are owned from stale locks, and tells other processes that refs are being moved. With
// deletes it frees packed-refs, too.
func (o Owned) BeginMove(ctx context.Context, refs []string, deletes bool) (end func(), err error) {
	owned := false
	for _, ref := range refs {
		if slices.ContainsFunc(o.Prefixes, func(prefix string) bool { return strings.HasPrefix(ref, prefix) }) {
			owned = true
			if err := o.Free(ctx, filepath.Join(o.Common, filepath.FromSlash(ref))+suffix); err != nil {
				return nil, err
			}
		}
	}
	if owned && deletes {
		if err := o.Free(ctx, o.packedLock()); err != nil {
			return nil, err
		}
	}
	if owned {
		end, err = filelock.LockShared(ctx, o.Moving)
	}
	if !owned || errors.Is(err, fs.ErrNotExist) { // the lock's folder was lost: nobody else looks there
		return func() {}, nil
	}
	return end, err
}
