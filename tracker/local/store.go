package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/tracker"
)

const (
	tempPrefix = ".ralph-"
	tempSuffix = ".tmp"
	staleTemp  = time.Hour // older files are left over from a crash
	maxTries   = 20        // edits of a file that somebody else keeps changing
	emptyPause = 25 * time.Millisecond
)

// errChanged is returned if the file was written between reading and replacing.
var errChanged = errors.New("changed meanwhile")

// Report writes or replaces the report under the file's marker line. It also works on a file with broken front matter, which a
// person may be editing.
func (t *Tracker) Report(ctx context.Context, key string, r tracker.Report) error {
	return t.update(ctx, key, func(raw []byte) ([]byte, error) {
		d, err := splitDocument(raw)
		if err != nil {
			return nil, err
		}
		return setReport(d, r)
	})
}

// Change edits labels and state in the file's front matter. A label that is both removed and added remains.
func (t *Tracker) Change(ctx context.Context, key string, c tracker.Change) error {
	return t.update(ctx, key, func(raw []byte) ([]byte, error) { return applyChange(raw, c) })
}

// Retract corrects the results of a run in the file. It does nothing if a later run has reported.
func (t *Tracker) Retract(ctx context.Context, key string, r tracker.Report, c tracker.Change) error {
	return t.update(ctx, key, func(raw []byte) ([]byte, error) {
		d, err := splitDocument(raw)
		if err != nil {
			return nil, err
		}
		last, _ := lastReport(d)
		switch { // run IDs sort by time
		case last.run > r.Run:
			return raw, nil
		case last.run == r.Run:
			if raw, err = setReport(d, r); err != nil {
				return nil, err
			}
		}
		return applyChange(raw, c)
	})
}

// update edits one issue's file: it reads, edits, and replaces the file, and starts over if the file has changed meanwhile. It
// does not touch a file that needs no edit.
func (t *Tracker) update(ctx context.Context, key string, edit func([]byte) ([]byte, error)) error {
	root, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer root.Close()
	name, err := find(root, key)
	if err != nil {
		return err
	}
	unlock, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for try := 1; try <= maxTries; try++ {
		if ctx.Err() != nil {
			return fmt.Errorf("write %s: %w", name, context.Cause(ctx))
		}
		raw, info, err := readFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return notFound(key)
		}
		if err == nil && len(raw) == 0 {
			// An editor that saves in place empties the file first. Replacing it now would lose the editor's text.
			if try == maxTries {
				return tracker.Problem{Where: t.location(name, 1), Err: errors.New("is empty; write the issue or remove the file")}
			}
			_ = retry.Sleep(ctx, emptyPause) // the loop checks ctx
			continue
		}
		var next []byte
		if err == nil {
			next, err = edit(raw)
		}
		if err != nil {
			return tracker.Problem{Where: t.location(name, lineIn(err)), Err: err}
		}
		if bytes.Equal(raw, next) {
			return nil
		}
		if err = t.replace(root, name, info, raw, next); err == nil {
			return nil
		} else if !errors.Is(err, errChanged) {
			return fmt.Errorf("write %s: %w", filepath.Join(t.cfg.Dir, name), err)
		}
		t.cfg.Log.Debug("issue file has changed meanwhile; editing again", "file", name)
	}
	return fmt.Errorf("write %s: %w, %d times; stop the program that keeps writing it",
		filepath.Join(t.cfg.Dir, name), errChanged, maxTries)
}

// replace replaces old with next atomically, with the file's mode and owner. If the file is no longer old, it fails with
// errChanged and changes nothing.
func (t *Tracker) replace(root *os.Root, name string, info fs.FileInfo, old, next []byte) (err error) {
	temp := tempPrefix + rand.Text() + tempSuffix
	if err := writeTemp(root, temp, info, next); err != nil {
		_ = root.Remove(temp)
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			return at.Err // the temporary path means nothing to people
		}
		return err
	}
	defer func() { err = errors.Join(err, ignoreMissing(root.Remove(temp))) }()
	if now, _, err := readFile(root, name); err != nil || !bytes.Equal(now, old) {
		return errors.Join(errChanged, ignoreMissing(err))
	}
	return swapIn(root, temp, name, old)
}

// swapIn exchanges temp with the file called name, if that is still old.
func swapIn(root *os.Root, temp, name string, old []byte) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	switch err := exchange(dir, temp, name); {
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL):
		if err := root.Rename(temp, name); err != nil {
			return err
		}
		return dir.Sync()
	case errors.Is(err, fs.ErrNotExist):
		return errChanged
	case err != nil:
		return err
	}
	// temp now is the previous file. If that is not the one that was edited, swap back.
	if was, _, err := readFile(root, temp); err != nil || !bytes.Equal(was, old) {
		if err := exchange(dir, temp, name); err != nil {
			return err
		}
		return errChanged
	}
	return dir.Sync()
}

func writeTemp(root *os.Root, temp string, info fs.FileInfo, data []byte) error {
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// As root, keep the owner. Other users cannot change it, and need not.
	if s, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := f.Chown(int(s.Uid), int(s.Gid)); err != nil {
			return err
		}
	}
	if err := f.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
