// Package incoming fetches objects from a remote with a size limit. The objects stay in a folder of their own until all
// have arrived, so an aborted fetch leaves nothing behind. A fetch ends if the disk gets too full.
package incoming

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/git"
)

// ErrSize means that the fetch would exceed its limit.
var ErrSize = errors.New("too large to be fetched")

const (
	checkInterval = 200 * time.Millisecond // interval of the checks of a fetch's size
	smallFetch    = 1 << 20                // bytes that are fetched even if the disk is too full
	unpackLimit   = 100                    // number of objects from which git fetch keeps a pack, too
)

// Fetch fetches objects into the repository that g is pinned to, and moves no ref. It fails with ErrSize if it would write
// more than maxBytes bytes (0: no limit), and with [*disk.ShortError].
func Fetch(ctx context.Context, g git.Runner, remote string, maxBytes int64, what ...string) error {
	objects := filepath.Join(g.Common(), "objects")
	dir, remove, err := Folder(ctx, objects)
	if err != nil {
		return err
	}
	defer remove()
	if err := FetchInto(ctx, WithObjectFolder(g, objects, dir), dir, remote, maxBytes, what...); err != nil {
		return err
	}
	if err := movePacks(ctx, g, dir, objects); err != nil {
		return fmt.Errorf("store what was fetched from %s: %w", remote, err)
	}
	return nil
}

// prefix is that of the folders' names: git gc removes folders with its first part.
const prefix = "tmp_objdir-incoming-ralph-"

// Folder makes a folder for fetched objects inside an objects folder. It is locked while it is in use; see [Left].
func Folder(ctx context.Context, objects string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp(objects, prefix); err != nil {
		return "", nil, fmt.Errorf("fetch: %w", err)
	}
	f, err := hold(ctx, dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, fmt.Errorf("fetch: %w", err)
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = f.Close()
	}, nil
}

// hold locks a folder. It waits, because Left of another process may lock it for a moment. Where locks do not work, Left does not list
// the folder, and git gc removes it.
func hold(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := filelock.Wait(ctx, f); err != nil && ctx.Err() != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Left lists the folders that nobody uses, because their process was killed, or is just about to lock them.
func Left(objects string) (dirs []string) {
	entries, _ := os.ReadDir(objects) // without the folder there are none
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(objects, e.Name())
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if unused, err := filelock.Try(f); unused && err == nil {
			dirs = append(dirs, path)
		}
		_ = f.Close()
	}
	return dirs
}

// WithObjectFolder returns g with a separate folder for new objects.
func WithObjectFolder(g git.Runner, objects, dir string) git.Runner {
	return g.WithAlternate(objects).With("GIT_OBJECT_DIRECTORY="+dir,
		"GIT_CONFIG_PARAMETERS='fetch.unpackLimit=1' 'fetch.bundleURI='") // the pack is written as it arrives; bundles would stay because of their refs
}

// FetchInto fetches into the folder passed to [WithObjectFolder]. It fails like Fetch.
func FetchInto(ctx context.Context, apart git.Runner, dir, remote string, maxBytes int64, what ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	guard := &disk.Guard{Place: filepath.Dir(dir), Floor: apart.Floor()}
	checksDone := make(chan struct{})
	go func() {
		defer close(checksDone)
		next := time.NewTicker(checkInterval)
		defer next.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-next.C:
				measure(ctx, dir, maxBytes, guard, cancel)
			}
		}
	}()
	err := apart.Fetch(ctx, remote, what...)
	measure(ctx, dir, maxBytes, guard, cancel)
	stopCause := context.Cause(ctx)
	cancel(nil)
	<-checksDone
	if stopCause != nil {
		return fmt.Errorf("fetch from %s: %w", remote, stopCause)
	}
	return err
}

func measure(ctx context.Context, dir string, maxBytes int64, guard *disk.Guard, cancel context.CancelCauseFunc) {
	size := disk.Measure(ctx, dir, dir).Bytes
	if maxBytes > 0 && size > maxBytes {
		cancel(ErrSize)
	}
	if size <= smallFetch {
		return
	}
	if short := guard.Short(); short != nil {
		cancel(short)
	}
}

// movePacks moves the packs in the folder to the repository.
func movePacks(ctx context.Context, g git.Runner, dir, objects string) error {
	entries, err := os.ReadDir(filepath.Join(dir, "pack"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ".pack")
		if is && err == nil {
			err = movePack(ctx, g, filepath.Join(dir, "pack", name), filepath.Join(objects, "pack", name))
		}
	}
	return err
}

func movePack(ctx context.Context, g git.Runner, from, to string) error {
	_, err := os.Lstat(from + ".promisor") // packs of a partial clone are kept
	if errors.Is(err, fs.ErrNotExist) {
		if done, err := unpack(ctx, g, from+".pack"); done || err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	for _, suffix := range []string{".promisor", ".rev", ".pack", ".idx"} { // the index last: git looks for indexes
		if err := os.Rename(from+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// unpack writes a few objects one by one, as git fetch does.
func unpack(ctx context.Context, g git.Runner, pack string) (done bool, err error) {
	f, err := os.Open(pack)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > smallFetch {
		return false, err
	}
	var head struct{ Magic, Version, Objects uint32 }
	if err := binary.Read(f, binary.BigEndian, &head); err != nil || head.Objects >= unpackLimit {
		return false, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	return true, g.Pipe(ctx, f, io.Discard, "unpack-objects", "-q")
}
