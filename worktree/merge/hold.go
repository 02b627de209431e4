package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
)

const (
	pause    = 20 * time.Millisecond  // between two looks at a lock
	patience = 2 * time.Second        // for locks of other programs: git holds them briefly
	glance   = 5 * time.Millisecond   // between two looks at checkouts: the user's next command may be a commit
	atRest   = 300 * time.Millisecond // a git that switches branches is never as long without a trace
)

// move moves a branch.
type move struct{ ref, old, new string }

// holdText is the content of a lock file of ralph's: by it, a later ralph knows what a killed one has begun.
const holdText = "ralph moves %s from %s to %s\n"

// hold is git's lock on the index of a checkout: while it exists, git updates neither the index nor the files there. A dead
// ralph's lock file is recognised by its content, and because the kernel has released the file lock on it.
type hold struct {
	files

	index string // with links resolved
	lock  *os.File
}

// hold waits for the lock of a checkout's index, and until nothing locks the branch and HEAD, so that git moves them at once. If
// a dead ralph has left a lock, its unfinished move is undone.
func (r Repo) hold(ctx context.Context, f files, place checkout.Checkout, m move) (*hold, error) {
	h := &hold{files: f, index: indexOf(place.GitDir)}
	others := []string{filepath.Join(r.Common, filepath.FromSlash(m.ref)) + ".lock", filepath.Join(place.GitDir, "HEAD.lock")}
	for waited := time.Duration(0); ; waited += pause {
		busy, err := h.try(ctx, others, m)
		if busy == "" || err != nil {
			return h, err
		}
		if waited >= patience {
			return nil, fmt.Errorf("%s exists, so another git command is running, or was killed; if none is running, type: rm %s",
				busy, git.Quote(busy))
		}
		if err := r.sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func indexOf(gitDir string) string { return git.Resolved(filepath.Join(gitDir, "index")) }

func (r Repo) sleep(ctx context.Context, d time.Duration) error {
	if r.Sleep != nil {
		return r.Sleep(ctx, d)
	}
	return retry.Sleep(ctx, d)
}

// try takes the lock, or returns the lock file of another program.
func (h *hold) try(ctx context.Context, others []string, m move) (busy string, err error) {
	for _, path := range others {
		if exists(path) {
			return path, nil
		}
	}
	path := h.index + ".lock"
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	left := (*move)(nil)
	if errors.Is(err, fs.ErrExist) {
		if lock, left = takeOver(path); left == nil {
			return path, nil
		}
	} else if err != nil {
		return "", err
	}
	h.lock = lock
	_, _ = filelock.Try(lock) // where it does not work, a person has to remove the lock of a killed ralph
	if left != nil {
		_ = h.finish(ctx, *left) // if it fails, the move takes over those files that are as it wants them
	}
	text := fmt.Appendf(nil, holdText, m.ref, m.old, m.new)
	if _, err = lock.WriteAt(text, 0); err == nil { // only now, because a lock file without text is not ralph's
		err = lock.Truncate(int64(len(text)))
	}
	if err != nil {
		h.release()
	}
	return "", err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// takeOver locks the lock file of a dead ralph, and returns the move that it has begun; nil for any other file.
func takeOver(path string) (*os.File, *move) {
	const longest = 4096 // bytes; the names of refs are shorter
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil
	}
	var m move
	text, err := io.ReadAll(io.LimitReader(f, longest))
	if err == nil {
		_, err = fmt.Sscanf(string(text), holdText, &m.ref, &m.old, &m.new)
	}
	locked := false
	if err == nil && git.ValidRef(m.ref) && git.IsObject(m.old) && git.IsObject(m.new) {
		locked, err = filelock.Try(f)
	}
	if err == nil && locked {
		opened, errOpened := f.Stat()
		there, errThere := os.Lstat(path) // another ralph may have removed it just before it released the lock
		if errOpened == nil && errThere == nil && os.SameFile(opened, there) {
			return f, &m
		}
	}
	_ = f.Close()
	return nil, nil
}

// release removes the lock, unless the user has done so: then the file is another git's.
func (h *hold) release() {
	ours, err := h.lock.Stat()
	there, errThere := os.Lstat(h.lock.Name())
	if err == nil && errThere == nil && os.SameFile(ours, there) {
		h.dropNext()
		_ = os.Remove(h.lock.Name()) // if it fails, the next move takes it over
	}
	_ = h.lock.Close()
}

// finish ends what a dead ralph has begun: it completes the checkout if its HEAD is at the new commit, and else undoes the changes.
// After an error the files stay as they are.
func (h *hold) finish(ctx context.Context, m move) error {
	switch head, err := h.git.Output(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); {
	case err != nil:
		return err
	case head == m.new:
		return h.update(ctx, m)
	case head == m.old:
		return h.undo(ctx, m)
	}
	return nil
}

// update moves index and files. It changes nothing if files of the user's are in the way (a [*blockedError]); after another error
// it may have changed some.
func (h *hold) update(ctx context.Context, m move) error {
	changes, err := h.changes(ctx, m.old, m.new)
	if err != nil {
		return err
	}
	next, err := h.copyIndex()
	if err != nil {
		return err
	}
	if !h.crowded(changes) { // git would overwrite ignored files
		switch err := h.readTree(ctx, m.old, m.new, "-n"); {
		case err == nil:
			if err = h.readTree(ctx, m.old, m.new); err != nil { // for example on a full disk
				return err
			}
			return os.Rename(next, h.index)
		case git.ExitCode(err) != refused:
			return err
		}
	}
	found, err := h.look(ctx, next, changes)
	if err != nil {
		return err
	}
	if len(found.blocked) > 0 {
		return &blockedError{found.blocked}
	}
	if err = h.adopt(ctx, found.moved); err == nil {
		err = h.readTree(ctx, m.old, m.new)
	}
	if err != nil {
		return err
	}
	return os.Rename(next, h.index)
}

// putBack undoes a move that an error has ended, and returns the error.
func (h *hold) putBack(ctx context.Context, m move, err error) error {
	if failed := h.undo(ctx, m); failed != nil {
		return fmt.Errorf("%w; %w", err, failed)
	}
	return err
}

// undo moves index and files back, wherever a move of them has ended.
func (h *hold) undo(ctx context.Context, m move) error {
	err := h.tryUndo(ctx, m)
	if err != nil {
		return fmt.Errorf("restore the files of %s in %s: %w", git.Short(m.old), h.dir, err)
	}
	return nil
}

func (h *hold) tryUndo(ctx context.Context, m move) error {
	changes, err := h.changes(ctx, m.old, m.new)
	if err != nil {
		return err
	}
	next, err := h.copyIndex()
	if err != nil {
		return err
	}
	found, err := h.look(ctx, next, changes)
	if err != nil {
		return err
	}
	if err := h.adopt(ctx, found.moved); err != nil {
		return err
	}
	// Both trees have what else the user has staged.
	from, err := h.git.Output(ctx, "write-tree")
	if err != nil {
		return err
	}
	to, err := h.treeWith(ctx, from, append(found.moved, found.kept...))
	if err != nil {
		return err
	}
	if err := h.readTree(ctx, from, to); err != nil {
		return err
	}
	if err := h.restore(ctx, changes, found); err != nil {
		return err
	}
	return os.Rename(next, h.index)
}

// copyIndex copies the index to the file that readTree updates. The copy has the time of the index: git compares it with the
// times of files to decide whether they may have changed since.
func (h *hold) copyIndex() (next string, err error) {
	next = h.dropNext()
	h.git = h.git.With("GIT_INDEX_FILE="+next, oneIndex)
	from, err := os.Open(h.index)
	if errors.Is(err, fs.ErrNotExist) {
		return next, nil
	} else if err != nil {
		return "", err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil {
		return "", err
	}
	to, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		return "", err
	}
	return next, os.Chtimes(next, info.ModTime(), info.ModTime())
}

// dropNext removes the copy of the index, also that of a dead ralph, and returns its path. It is beside the index, so that it
// can be renamed.
func (h *hold) dropNext() string {
	next := h.index + ".ralph"
	for _, path := range []string{next, next + ".lock"} {
		_ = os.Remove(path) // usually there is none
	}
	return next
}
