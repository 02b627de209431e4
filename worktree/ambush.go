package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// lookLimit is how long one look at the files of a worktree may take. It only ever ends a look at files that a process
// in a sandbox keeps turning into something that is never read to its end.
const lookLimit = 10 * time.Minute

// statusOfHostile is status for files that somebody may have arranged to stop git.
func (t *Tree) statusOfHostile(ctx context.Context, g git) (look, error) {
	if err := t.disarm(ctx); err != nil {
		return look{}, fmt.Errorf("look for what git cannot read: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lookLimit, fmt.Errorf("no end after %s", lookLimit))
	defer cancel()
	return g.status(ctx)
}

// disarm removes pipes, sockets and devices that have the name of a file that git reads wherever it finds one: git opens
// them and waits for ever. They can be in no commit, so that nothing is lost. A file of such a name that is too big to
// be read into the host's memory gets another name.
func (t *Tree) disarm(ctx context.Context) error {
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return disarm(ctx, root, len(t.Dir()))
}

// openedLimit is in bytes; git reads such a file as a whole.
const openedLimit = 16 << 20

// pathLimit is the length of a path beyond which git does not open anything either.
const pathLimit = 4096

func disarm(ctx context.Context, root *os.Root, length int) error {
	dir, err := root.Open(".")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // closed to git as well
		return nil
	}
	if err != nil {
		return err
	}
	var below []string
	for err == nil {
		var entries []fs.DirEntry
		entries, err = dir.ReadDir(1000)
		for _, e := range entries {
			name := e.Name()
			switch kind := e.Type(); {
			case kind.IsDir():
				below = append(below, name)
			case kind&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeIrregular) != 0 && opened(name),
				kind&fs.ModeSymlink != 0 && strings.EqualFold(name, ".gitmodules"): // which git would follow
				if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return errors.Join(err, dir.Close())
				}
			case kind.IsRegular() && opened(name):
				info, err := e.Info()
				if err != nil || info.Size() <= openedLimit {
					continue
				}
				if err := root.Rename(name, name+".too-big-for-git"); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return errors.Join(err, dir.Close())
				}
			}
		}
	}
	if err := dir.Close(); err != nil {
		return err
	}
	if !errors.Is(err, io.EOF) {
		return nil // gone meanwhile
	}
	for _, name := range below {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if length+len(name) >= pathLimit {
			continue
		}
		sub, err := root.OpenRoot(name)
		if err != nil {
			continue // gone, or closed to git as well
		}
		if err := errors.Join(disarm(ctx, sub, length+1+len(name)), sub.Close()); err != nil {
			return err
		}
	}
	return nil
}

// opened reports whether git reads a file of that name while it looks at a worktree.
func opened(name string) bool {
	return slices.ContainsFunc([]string{".gitignore", ".gitattributes", ".gitmodules", ".mailmap", ".git"}, func(n string) bool {
		return strings.EqualFold(n, name)
	})
}
