package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/sandboxes"
)

// silentError means that a provider's call was given up: it had not returned long after it was to end.
type silentError struct {
	Call string
	Err  error // why it was to end
}

func (e *silentError) Error() string {
	return fmt.Sprintf("the sandbox does not answer: %s was asked to end, but has not returned: %v", e.Call, e.Err)
}

// Unwrap returns the reason why the call was to end.
func (e *silentError) Unwrap() error { return e.Err }

// answer is the result of a provider's call.
type answer[T any] struct {
	got T
	err error
}

// startCall makes a provider's call in a goroutine. The channel is closed without a value if the provider ends the goroutine.
func startCall[T any](call func() (T, error)) <-chan answer[T] {
	returned := make(chan answer[T], 1)
	go func() {
		defer close(returned) // also when the provider ends the goroutine
		got, err := call()
		returned <- answer[T]{got, err}
	}()
	return returned
}

// awaitCall waits for a call. It gives up halt.StageLimit after the end of ctx, or a moment after it if the run is to end.
func awaitCall[T any](ctx context.Context, asked context.Context, name string, returned <-chan answer[T]) (got T, err error) {
	select {
	case a, ok := <-returned:
		return a.result(name, ok)
	case <-ctx.Done():
	}
	cause, patience := context.Cause(ctx), halt.StageLimit
	if halt.Shutdown(cause) || errors.Is(cause, errHanging) {
		patience = halt.Moment
	}
	timed, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	limited, cancel := halt.Within(timed, halt.Grace(asked, halt.Moment))
	defer cancel()
	select {
	case a, ok := <-returned:
		return a.result(name, ok)
	case <-limited.Done():
		return got, &silentError{name, cause}
	}
}

func (a answer[T]) result(name string, ok bool) (T, error) {
	if !ok {
		a.err = fmt.Errorf("%s has not returned", name)
	}
	return a.got, a.err
}

// boundedSandbox is a sandbox whose calls are given up like those of awaitCall. After a command that was given up it runs no
// other.
type boundedSandbox struct {
	sandboxes.Sandbox
	asked  context.Context
	silent atomic.Pointer[silentError]
}

// Unwrap returns the provider's own sandbox.
func (p *boundedSandbox) Unwrap() sandboxes.Sandbox { return p.Sandbox }

func (p *boundedSandbox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if silent := p.silent.Load(); silent != nil {
		return sandboxes.Exit{}, silent
	}
	due, done := context.WithCancelCause(ctx)
	defer done(nil)
	go func() {
		select {
		case <-cmd.Interrupt:
			time.AfterFunc(cmp.Or(max(cmd.Grace, 0), proc.DefaultGrace), func() { done(halt.ErrAsked) })
		case <-due.Done():
		}
	}()
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out, errs := newOutput(cmd.Stdout), newOutput(cmd.Stderr)
	if proc.Same(cmd.Stdout, cmd.Stderr) {
		errs = out
	}
	if cmd.Stdout != nil {
		cmd.Stdout = out
	}
	if cmd.Stderr != nil {
		cmd.Stderr = errs
	}
	exit, err := awaitCall(due, p.asked, "Exec", startCall(func() (sandboxes.Exit, error) { return p.Sandbox.Exec(running, cmd) }))
	if silent, ok := errors.AsType[*silentError](err); ok {
		p.silent.Store(silent)
		out.end()
		errs.end()
	}
	return exit, err
}

// closeLimit is longer than any sandbox takes to close.
const closeLimit = 2 * halt.StageLimit

// Close has only a moment once a command was given up and the run is to end: the provider would not answer Close either.
func (p *boundedSandbox) Close(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, closeLimit, errors.New("it took too long"))
	defer stop()
	if p.silent.Load() != nil {
		limited, cancel := halt.Within(ctx, halt.Grace(p.asked, halt.Moment))
		defer cancel()
		ctx = limited
	}
	_, err := awaitCall(ctx, p.asked, "Close", startCall(func() (any, error) { return nil, p.Sandbox.Close(ctx) }))
	return err
}

// output is a command's writer until the command is given up.
type output struct {
	to    io.Writer
	turn  chan struct{} // has room for the one who writes
	ended atomic.Bool
}

func newOutput(to io.Writer) *output { return &output{to: to, turn: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	if o.ended.Load() {
		return 0, sandboxes.ErrClosed
	}
	return o.to.Write(p)
}

// end waits for a Write in progress, but only for a moment: its writer may never return.
func (o *output) end() {
	o.ended.Store(true)
	select {
	case o.turn <- struct{}{}:
		<-o.turn
	case <-time.After(halt.Moment):
	}
}
