package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/worktree/git"
)

// exitError is the failure of a script that ran in the sandbox.
type exitError struct {
	code   int
	stderr string // end of standard error
}

func (e *exitError) Error() string {
	lines := strings.Split(strings.TrimSpace(e.stderr), "\n")
	return fmt.Sprintf("git in the sandbox ended with status %d: %s", e.code, git.Printable(lines[len(lines)-1]))
}

// IsTemporary reports whether an import failed because of the machine, the engine or the sandbox, for example a full disk or
// a process limit, and not because of the data. The same work may be imported later.
func IsTemporary(err error) bool {
	if err == nil || errors.Is(err, ErrLate) {
		return false
	}
	if errors.Is(err, ErrInside) || errors.Is(err, ErrAway) || errors.Is(err, errRoom) || IsOutOfResources(err) {
		return true
	}
	if exit, ok := errors.AsType[*exitError](err); ok {
		return wasKilled(exit.code) || namesShortage(exit.stderr)
	}
	if failed, ok := errors.AsType[*git.Error](err); ok {
		return wasKilled(failed.ExitCode) || namesShortage(failed.Stderr)
	}
	files, ok := errors.AsType[*UnsavedError](err)
	return ok && strings.Contains(files.Error(), noRoom)
}

// IsOutOfResources reports whether the machine lacks disk space, memory, processes or files, or a git holds the lock of a ref and
// does not end. It only trusts errors of the system itself, of the sandbox ([ErrInside]), of [MarkBaseFailure] and [git.ErrLocked],
// because an agent may have written any other text.
func IsOutOfResources(err error) bool {
	_, said := errors.AsType[*baseError](err)
	said = said || errors.Is(err, ErrInside) && namesShortage(err.Error())
	return said || slices.ContainsFunc([]error{
		unix.ENOSPC, unix.EDQUOT, unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EIO, unix.EROFS, git.ErrLocked,
	}, func(cause error) bool { return errors.Is(err, cause) })
}

// MarkBaseFailure marks the failure of a git command that has only read files of the base, if git reports that the machine
// lacks something.
func MarkBaseFailure(err error) error {
	if failed, ok := errors.AsType[*git.Error](err); ok && namesShortage(failed.Stderr) {
		return &baseError{err}
	}
	return err
}

type baseError struct{ error }

func (e *baseError) Unwrap() error { return e.error }

// wasKilled reports whether a signal ended a program: git itself exits with at most 128.
func wasKilled(code int) bool { return code < 0 || code > 128 && code <= 128+64 }

// namesShortage reports whether a program's message says that the machine lacks something. An agent may have written the
// text; see [IsOutOfResources].
func namesShortage(text string) bool {
	text = strings.ToLower(text)
	for _, words := range []string{
		"no space left on device", "out of diskspace", "quota exceeded", "couldn't write '",
		"resource temporarily unavailable", "cannot fork", "can't fork", "cannot allocate memory",
		"too many open files", "unable to create thread", "input/output error", "read-only file system",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// maxWait is how long imports are retried that fail for a temporary reason.
const maxWait = 7 * 24 * time.Hour

// setAsideAfter is how often an import may fail in the same way, and differentAfter how often in any way. A kill may be due to a
// limit of the sandbox on a busy machine, so git may be killed killedAfter times, over at least killedTime.
const (
	setAsideAfter  = 2
	differentAfter = 5
	killedAfter    = 5
	killedTime     = time.Hour
)

// Failures counts the failed imports of a tree since the last success.
type Failures struct {
	// Failure is the reason of the last failure, and Count how often it occurred in a row. Temporary failures are not
	// counted.
	Failure string `json:"failure,omitempty"`
	Count   int    `json:"failures,omitempty"`
	// Refused is the number of failures that were not temporary, whatever their reasons.
	Refused int `json:"refused,omitempty"`
	// Waiting is the time of the first temporary failure; zero: the last failure was not temporary.
	Waiting time.Time `json:"waiting,omitzero"`
	// Killed is how often in a row git was killed, and Since the time of the first kill.
	Killed int       `json:"killed,omitempty"`
	Since  time.Time `json:"killed_since,omitzero"`
}

// Add counts a failure.
func (f *Failures) Add(err error, now time.Time) {
	temporary := IsTemporary(err)
	if temporary && f.Waiting.IsZero() {
		f.Waiting = now
	}
	exit, inside := errors.AsType[*exitError](err)
	failed, outside := errors.AsType[*git.Error](err)
	if inside && wasKilled(exit.code) || outside && wasKilled(failed.ExitCode) {
		if f.Killed++; f.Killed == 1 {
			f.Since = now
		}
	} else {
		f.Killed, f.Since = 0, time.Time{}
	}
	if !temporary {
		f.Refused++
	}
	switch {
	case f.Refused >= differentAfter:
		f.Count = setAsideAfter
	case f.Killed >= killedAfter && now.Sub(f.Since) >= killedTime:
		f.Count = setAsideAfter
	case temporary && now.Sub(f.Waiting) < maxWait:
		f.Failure = err.Error()
		return
	case errors.Is(err, ErrLate):
		f.Count = setAsideAfter
	case f.Failure != err.Error() && !temporary:
		f.Count = 0
	}
	f.Failure, f.Count = err.Error(), f.Count+1
	if !temporary {
		f.Waiting = time.Time{}
	}
}

// SetPermanent records a failure that is permanent.
func (f *Failures) SetPermanent(err error) {
	*f = Failures{Failure: err.Error(), Count: setAsideAfter}
}

// IsPermanent reports whether another import would fail as well.
func (f Failures) IsPermanent() bool { return f.Count >= setAsideAfter }

// MayRetry reports whether another import may succeed later although nobody changes the work.
func (f Failures) MayRetry() bool { return !f.IsPermanent() && !f.Waiting.IsZero() }
