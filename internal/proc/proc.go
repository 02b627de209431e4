// Package proc runs every external process of ralph: by argv, never through a shell, in a session and process group of its
// own. When a process ends, everything that it started is ended, too. All functions are safe for concurrent use.
//
// To end a process, proc sends SIGTERM and, after a grace time, SIGKILL to the whole tree: the process group, the
// descendants, and every process with the mark in its environment, which finds children that called setsid. A process
// escapes only if it has left the session, lost its parent and cleared its environment.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultGrace is the default time between SIGTERM and SIGKILL.
const DefaultGrace = 10 * time.Second

// Spec describes one process to run.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is searched for in the absolute folders of Env's PATH;
	// a relative path is relative to Dir.
	Argv []string
	Dir  string
	// Env is the whole environment; nothing is inherited. The last of several entries with the same name wins. Relative and
	// empty folders are removed from PATH.
	Env []string
	// Stdin is copied to the process; nil is empty. The process may exit without reading it. When a Read fails, the process
	// is killed, so that it never acts on a truncated input. A Read that still blocks after the process has ended is
	// abandoned; an io.PipeReader is closed then, and writers to the pipe get os.ErrClosed.
	Stdin io.Reader
	// Stdout and Stderr receive the output, each from one goroutine; nil discards it. If both are the same writer, one
	// goroutine writes to it. After a writer's error, the rest of its output is discarded. A blocking writer delays the
	// process and Run, but not the killing.
	Stdout, Stderr io.Writer
	// Mark, if set, is put into the environment as RALPH_MARK. It identifies the process's descendants: at the end of Run,
	// and for KillMarked after a crash of ralph. Without a mark only the process group is killed. That is enough for
	// trusted programs, and saves a scan of all processes of the machine.
	Mark string
	// Tied sends the process a SIGTERM when this process dies, for programs that clean up. Linux only.
	Tied bool
	// Memory, if set, limits in bytes the data memory of the process and of each of its children, before Stdin is
	// available. Linux only.
	Memory uint64
	// Interrupt asks the process to end when it closes.
	Interrupt <-chan struct{}
	// Grace is the time between SIGTERM and SIGKILL; zero means DefaultGrace.
	Grace time.Duration
}

// Exit describes how a process ended.
type Exit struct {
	Code   int            // exit status; 128 plus the signal's number after a death by signal
	Signal syscall.Signal // fatal signal; 0: none
}

// ErrStart is wrapped by the error of a process that could not be started; see StartError.
var ErrStart = errors.New("could not start")

// StartError is an ErrStart with the program and the cause, such as exec.ErrNotFound. It wraps both.
type StartError struct {
	Name string // Argv[0]
	Err  error
}

func (e *StartError) Error() string { return ErrStart.Error() + " " + e.Name + ": " + e.Err.Error() }

// Unwrap returns ErrStart and the cause.
func (e *StartError) Unwrap() []error { return []error{ErrStart, e.Err} }

// Run runs the process and returns after its whole tree has ended and both writers are done. A nil error means that the
// process ran; the Exit describes its end. When ctx ends, the tree is killed at once and the error is context.Cause(ctx).
// If part of the tree survives SIGKILL for 30 s, the error names it.
func Run(ctx context.Context, s Spec) (Exit, error) {
	if ctx.Err() != nil {
		return Exit{}, context.Cause(ctx)
	}
	if s.Tied {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	c, err := start(&s)
	if err != nil {
		return Exit{}, err
	}
	exited := make(chan struct{})
	go func() {
		awaitExit(c.tree.root)
		close(exited)
	}()

	cause := c.await(ctx, &s, exited)
	if ctx.Err() != nil {
		cause = context.Cause(ctx) // an abort takes precedence over an exit
	}
	if err := c.tree.end(); err != nil {
		// The process may be the survivor: reap it when it dies.
		go func() {
			<-exited
			_, _ = reap(c.tree.root)
		}()
		c.files.Finish()
		err = fmt.Errorf("end %s: %w", s.Argv[0], err)
		if cause != nil {
			err = fmt.Errorf("%w; %w", cause, err)
		}
		return Exit{}, err
	}
	<-exited
	exit, err := reap(c.tree.root)
	if err == nil {
		err = c.tree.awaitGroup()
	}
	c.files.Finish()
	if cause != nil {
		return exit, cause
	}
	if err != nil {
		return exit, fmt.Errorf("end %s: %w", s.Argv[0], err)
	}
	return exit, nil
}

// await returns nil when the process has exited or its grace has ended, and otherwise the reason to kill it.
func (c *child) await(ctx context.Context, s *Spec, exited <-chan struct{}) error {
	interrupt := s.Interrupt
	var grace <-chan time.Time
	for {
		select {
		case <-exited:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-c.files.Failed():
			return fmt.Errorf("read the input of %s: %w", s.Argv[0], err)
		case <-interrupt:
			interrupt = nil
			_ = unix.Kill(-c.tree.root, unix.SIGTERM) // it may have ended already
			d := s.Grace
			if d <= 0 {
				d = DefaultGrace
			}
			grace = time.After(d)
		case <-grace:
			return nil
		}
	}
}

// reap collects the exit status of a child that has ended. Until then its PID is not reused.
func reap(pid int) (Exit, error) {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Exit{}, fmt.Errorf("wait: %w", err)
		}
		if ws.Signaled() {
			return Exit{Code: 128 + int(ws.Signal()), Signal: ws.Signal()}, nil
		}
		return Exit{Code: ws.ExitStatus()}, nil
	}
}
