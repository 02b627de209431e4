package loop

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// shell is a command line of the user's, run as `sh -c LINE` in the sandbox.
type shell struct {
	line           string
	env            []string
	timeout        time.Duration
	stdout, stderr io.Writer
}

// shell runs a command line. timedOut is set if its own timeout ended it. An error means that it is unknown whether it ran to its
// end: the run was stopped, the sandbox is broken, or there is no sh.
func (r *runner) shell(ctx context.Context, s shell) (exit sandboxes.Exit, timedOut bool, err error) {
	if err := r.abortCause(); err != nil {
		return exit, false, err
	}
	shellCtx, stop := context.WithTimeoutCause(ctx, s.timeout, errCommand)
	defer stop()
	exit, err = r.c.Sandbox.Exec(shellCtx, sandboxes.Command{
		Argv: []string{"sh", "-c", s.line}, Env: s.env,
		Stdout: s.stdout, Stderr: s.stderr,
		Interrupt: r.c.Interrupt, Grace: r.c.Timers.Interrupt,
	})
	if stopped := r.abortCause(); stopped != nil {
		return exit, false, stopped
	}
	switch {
	case err == nil:
		if !exit.OK() && exit.Code == 0 {
			exit.Code = 1 // death by a signal is never a success, whatever the sandbox reports
		}
		return exit, false, nil
	case shellCtx.Err() == nil:
		return exit, false, err
	case errors.Is(context.Cause(shellCtx), errCommand):
		return sandboxes.Exit{Code: 137, Signal: "SIGKILL"}, true, nil
	}
	return exit, false, context.Cause(shellCtx)
}

func stdinReader(s string) io.Reader {
	if s == "" {
		return nil
	}
	return strings.NewReader(s)
}
