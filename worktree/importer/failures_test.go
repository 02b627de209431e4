package importer

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

func TestPassing(t *testing.T) {
	t.Parallel()
	pathError := func(errno syscall.Errno) error {
		return &os.PathError{Op: "fork/exec", Path: "/usr/bin/git", Err: errno}
	}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                       {nil, false},
		"engine gone":                   {fmt.Errorf("%w: cannot connect", ErrInside), true},
		"late":                          {fmt.Errorf("%w: %w", ErrInside, ErrLate), false},
		"no process here":               {pathError(syscall.EAGAIN), true},
		"no memory here":                {pathError(syscall.ENOMEM), true},
		"no files here":                 {pathError(syscall.EMFILE), true},
		"disk full here":                {pathError(syscall.ENOSPC), true},
		"ref locked all the time":       {fmt.Errorf("move refs: %w", git.ErrLocked), true},
		"quota here":                    {pathError(syscall.EDQUOT), true},
		"broken disk":                   {pathError(syscall.EIO), true},
		"no permission":                 {pathError(syscall.EACCES), false},
		"git killed":                    {&git.Error{ExitCode: 137}, true},
		"git without threads":           {&git.Error{ExitCode: 128, Stderr: "fatal: unable to create thread: Resource temporarily unavailable\n"}, true},
		"git's disk full":               {&git.Error{ExitCode: 128, Stderr: "error: file write error: No space left on device\n"}, true},
		"git's disk full, for a ref":    {&git.Error{ExitCode: 128, Stderr: "fatal: commit: cannot update ref 'refs/ralph/work/k': couldn't write '/r/.git/refs/ralph/work/k.lock'\n"}, true},
		"content refused":               {&git.Error{ExitCode: 128, Stderr: "error: object 1234: hasDotgit: contains '.git'\n"}, false},
		"git's memory limit":            {&git.Error{ExitCode: 128, Stderr: "fatal: Out of memory, malloc failed\n"}, false},
		"script killed":                 {&exitError{137, ""}, true},
		"dash without processes":        {&exitError{2, "ralph-import: 1: Cannot fork\n"}, true},
		"busybox without processes":     {&exitError{2, "ralph-import: line 1: can't fork: Resource temporarily unavailable\n"}, true},
		"bash without processes":        {&exitError{254, "ralph-import: fork: Resource temporarily unavailable\n"}, true},
		"script's disk full":            {&exitError{1, "no space is left for the commits: fatal: write error: No space left on device\n"}, true},
		"script found nothing":          {&exitError{1, "fatal: not a tree object\n"}, false},
		"files for which no room was":   {&UnsavedError{errors.New("not everything is saved (1): no room for the files")}, true},
		"a file that nobody may read":   {&UnsavedError{errors.New("not everything is saved (1): error: open(\"x\"): Permission denied")}, false},
		"too big":                       {fmt.Errorf("5 objects: %w", ErrTooBig), false},
		"too big for the disk as it is": {ExplainSize(ErrTooBig, Caps{Size: 1 << 62}, t.TempDir()), true},
	} {
		if got := IsTemporary(tt.err); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		if tt.err != nil && IsTemporary(fmt.Errorf("import k: %w", tt.err)) != tt.want {
			t.Errorf("%s, wrapped: %v", name, !tt.want)
		}
	}
}

// What a sandbox says about its own failure is not from an agent; what git says in it may be.
func TestIsOutOfResources(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		fmt.Errorf("%w: start /bin/sh: %s", ErrInside, syscall.EAGAIN):            true,
		fmt.Errorf("%w: cannot connect to the engine", ErrInside):                 false,
		fmt.Errorf("%w: %w", ErrInside, ErrLate):                                  false,
		&exitError{2, "ralph-import: 1: Cannot fork\n"}:                           false,
		&git.Error{ExitCode: 128, Stderr: "error: cannot fork() for a hook\n"}:    false,
		&os.PathError{Op: "fork/exec", Path: "/usr/bin/git", Err: syscall.EAGAIN}: true,
	} {
		if got := IsOutOfResources(fmt.Errorf("import k: %w", err)); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// A temporary failure is retried for a week; a failure because of the content is final when it has occurred twice in the
// same way.
func TestFailures(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	away, bad, late := fmt.Errorf("%w: gone", ErrInside), errors.New("refused"), fmt.Errorf("%w: %w", ErrInside, ErrLate)
	oom := &exitError{137, ""}
	type step struct {
		after time.Duration
		err   error
	}
	for name, tt := range map[string]struct {
		steps       []step
		waits, over bool
	}{
		"once refused":              {[]step{{0, bad}}, false, false},
		"twice refused":             {[]step{{0, bad}, {0, bad}}, false, true},
		"refused in two ways":       {[]step{{0, bad}, {0, errors.New("other")}}, false, false},
		"refused in ever new ways":  {[]step{{0, bad}, {0, errors.New("2")}, {0, errors.New("3")}, {0, errors.New("4")}, {0, errors.New("5")}}, false, true},
		"late":                      {[]step{{0, late}}, false, true},
		"away for days":             {[]step{{0, away}, {0, away}, {0, away}, {6 * 24 * time.Hour, away}}, true, false},
		"away for a week":           {[]step{{0, away}, {7 * 24 * time.Hour, away}, {7 * 24 * time.Hour, away}}, false, true},
		"killed for an hour":        {[]step{{0, oom}, {0, oom}, {0, oom}, {0, oom}, {time.Hour, oom}}, false, true},
		"killed often in a minute":  {[]step{{0, oom}, {0, oom}, {0, oom}, {0, oom}, {time.Minute, oom}}, true, false},
		"killed now and then":       {[]step{{0, oom}, {0, oom}, {0, oom}, {0, away}, {time.Hour, oom}}, true, false},
		"killed after it was away":  {[]step{{0, away}, {time.Hour, oom}, {time.Hour, oom}, {time.Hour, oom}, {time.Hour, oom}, {time.Hour, oom}}, true, false},
		"refused after it was away": {[]step{{0, away}, {0, bad}}, false, false},
		"away after it was refused": {[]step{{0, bad}, {0, away}}, true, false},
		"refused every other time":  {[]step{{0, bad}, {0, away}, {0, bad}, {0, away}, {0, bad}, {0, away}, {0, bad}, {0, away}, {0, bad}}, false, true},
	} {
		var f Failures
		for _, s := range tt.steps {
			f.Add(s.err, begin.Add(s.after))
		}
		if f.MayRetry() != tt.waits || f.IsPermanent() != tt.over {
			t.Errorf("%s: waits %v, over %v: %+v", name, f.MayRetry(), f.IsPermanent(), f)
		}
	}
}
