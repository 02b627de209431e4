package hint

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/statedir"
)

// unwritable returns the hint for a place where ralph may not or does not write, or "".
func unwritable(err error) string {
	if errors.Is(err, statedir.ErrFolder) {
		return "make it writable for your user, or choose another folder with state-dir or XDG_STATE_HOME"
	}
	if errors.Is(err, statedir.ErrInCheckout) {
		return "choose a folder elsewhere with state-dir or XDG_STATE_HOME, or make git ignore this one"
	}
	if errors.Is(err, unix.EROFS) {
		return "the file system is read-only; mount it for writing, or work in a clone elsewhere"
	}
	at, ok := errors.AsType[*fs.PathError](err)
	if ok && at.Op != "fork/exec" && errors.Is(at, unix.EACCES) && filepath.IsAbs(at.Path) {
		return "your user has no permission; look with: ls -ld " + git.Quote(existing(at.Path))
	}
	return ""
}

// exhausted returns the hint for a system limit that ralph has reached, or "".
func exhausted(err error) string {
	at, ok := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, unix.EMFILE):
		return "allow more open files (ulimit -n shows how many)"
	case ok && at.Op == "fork/exec" && errors.Is(err, unix.EAGAIN):
		return "your user may start no more processes: end some, or allow more of them (ulimit -u shows how many)"
	}
	return ""
}
