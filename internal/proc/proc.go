// Package proc runs every external process of ralph: by argv, never through a shell, in a session and process group of
// its own, ended with everything it started. Every package that starts something uses it, from any goroutine.
//
// A process that is asked to end gets SIGTERM, then, after a grace time, its whole tree gets SIGKILL: its group, its
// descendants, and whatever carries its mark in the environment, so that a child that called setsid does not escape.
// What does escape is a process that did all of this: left the session, lost its parent and cleared its environment.
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

// DefaultGrace is the time between asking a process to end and killing it, where a Spec names none.
const DefaultGrace = 10 * time.Second

// Spec is one process to run.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked up in the PATH of Env, in its absolute
	// folders only; a relative path is relative to Dir.
	Argv []string
	Dir  string
	// Env is the whole environment; nothing is inherited. Of entries with the same name the last one counts. The process gets
	// a PATH without relative and empty folders.
	Env []string
	// Stdin is copied to the process; nil is empty. A process that does not read it is not an error. When Stdin itself
	// fails, the process is killed, so that it never acts on half its input. A Read that blocks past the process's
	// end is abandoned; an io.PipeReader is closed then, and writers to the pipe get os.ErrClosed.
	Stdin io.Reader
	// Stdout and Stderr get the output, each from one goroutine; nil discards. One writer for both gets both from one
	// goroutine. When a writer fails, the rest of that output is discarded. A writer that blocks holds up the process,
	// and Run; it does not hold up the killing.
	Stdout, Stderr io.Writer
	// Mark, when set, is put into the environment (RALPH_MARK=<mark>) and finds the process's children again: here at
	// the end, and by KillMarked after a crash of ralph. Without it only the process group is killed, which is enough
	// for programs that are trusted and does not cost a look at every process of the machine.
	Mark string
	// Tied asks the process to end, by SIGTERM, when this process dies. It needs Linux, and is for programs that clean up.
	Tied bool
	// Memory, when set, is the most bytes of memory that the process and each that it starts may write to, from before it gets
	// any of Stdin. It needs Linux.
	Memory uint64
	// Interrupt, when closed, asks the process to end.
	Interrupt <-chan struct{}
	// Grace is the time from asking to killing; zero means DefaultGrace.
	Grace time.Duration
}

// Exit is how a process ended.
type Exit struct {
	Code   int            // for a death by signal 128 plus its number
	Signal syscall.Signal // 0: exited by itself
}

// ErrStart is wrapped by errors of processes that could not be started; see StartError.
var ErrStart = errors.New("could not start")

// StartError is the ErrStart that says what and why. It also wraps the cause, such as exec.ErrNotFound.
type StartError struct {
	Name string // Argv[0]
	Err  error
}

func (e *StartError) Error() string { return ErrStart.Error() + " " + e.Name + ": " + e.Err.Error() }

// Unwrap gives ErrStart and the cause.
func (e *StartError) Unwrap() []error { return []error{ErrStart, e.Err} }

// Run runs the process and returns when it and its whole tree have ended and both writers are done. A nil error means
// it ran; the Exit says how it ended. When ctx ends the tree is killed at once and the error is context.Cause(ctx).
// When part of the tree survives SIGKILL for 30 s, the error names it.
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
		cause = context.Cause(ctx) // an abort counts before an exit
	}
	if err := c.tree.end(); err != nil {
		// The process may be the survivor; reap it whenever it dies.
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

// await returns when the process has exited or has used up its grace (nil), or else why it has to be killed.
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
			_ = unix.Kill(-c.tree.root, unix.SIGTERM) // it may be gone already
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

// reap takes the exit status of a child that has ended. Until then its PID cannot become another process's.
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
