package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const lockSuffix = ".lock"

// ownedRefs describes the refs that only this program moves.
type ownedRefs struct {
	prefixes []string
	lockAge  time.Duration
}

// WithOwnedRefs sets the prefixes, such as "refs/x/", of refs that only this program moves. Git locks a ref only briefly, so
// a lock file of such a ref that is older than lockAge was left by a killed git, and MoveRefs removes it.
func (g Runner) WithOwnedRefs(lockAge time.Duration, prefixes ...string) Runner {
	g.ownedRefs = ownedRefs{prefixes: prefixes, lockAge: lockAge}
	return g
}

// StaleLocks lists the lock files left on the owned refs.
func (g Runner) StaleLocks() ([]string, error) {
	var stale []string
	for _, prefix := range g.ownedRefs.prefixes {
		root := filepath.Join(g.common, filepath.FromSlash(prefix))
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && strings.HasSuffix(path, lockSuffix) && g.ownedRefs.isStale(path) {
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

// removeStaleLocks removes the stale locks of the edits' refs.
func (g Runner) removeStaleLocks(edits []Edit) error {
	for _, e := range edits {
		for _, prefix := range g.ownedRefs.prefixes {
			path := filepath.Join(g.common, filepath.FromSlash(e.Ref)) + lockSuffix
			if !strings.HasPrefix(e.Ref, prefix) || !g.ownedRefs.isStale(path) {
				continue
			}
			if err := removeLock(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o ownedRefs) isStale(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > o.lockAge
}

func removeLock(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale lock: %w", err)
	}
	return nil
}
