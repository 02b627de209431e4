package hint

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/statedir"
)

// unwritable is what to do where ralph may not write; empty: the error is about something else.
func unwritable(err error) string {
	if errors.Is(err, statedir.ErrFolder) {
		return "let your user write there, or choose another folder with state-dir or XDG_STATE_HOME"
	}
	if errors.Is(err, unix.EROFS) {
		return "the file system is read-only; mount it for writing, or work in a clone elsewhere"
	}
	at, ok := errors.AsType[*fs.PathError](err)
	if ok && at.Op != "fork/exec" && errors.Is(at, unix.EACCES) && filepath.IsAbs(at.Path) {
		return "your user lacks the rights; who has them: ls -ld " + git.Quote(existing(at.Path))
	}
	return ""
}
