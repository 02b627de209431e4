package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// ErrEnded is wrapped by the error of Exec if the supervisor has ended without Close. The error contains how it ended.
var ErrEnded = errors.New("the sandbox has ended by itself")

// endedError describes the end of the supervisor. Its process must have ended.
func (c *Client) endedError() error {
	how := c.exit.String()
	if how == "signal: killed" {
		how += ", perhaps for lack of memory"
	}
	if line := c.crashOutput(); line != "" {
		how += ": " + line
	}
	return fmt.Errorf("%w (%s)", ErrEnded, how)
}

// listen dispatches events until the supervisor ends. It drops events of unknown commands.
func (c *Client) listen() {
	defer close(c.eventsEnded)
	buf := make([]byte, maxEvent)
	for {
		e, err := c.readEvent(buf)
		if err != nil {
			break
		}
		c.mu.Lock()
		switch p := c.pendingByID[e.ID]; {
		case e.Kind == kindKilled:
			c.killed[e.Cause]++
		case p != nil && (e.Kind == kindExited || e.Kind == kindRefused):
			delete(c.pendingByID, e.ID)
			p.end = e
			p.ended <- nil // never blocks: the channel has room for one
		}
		c.mu.Unlock()
	}
	if !c.commands.Closed() {
		_ = c.process.Kill()
	}
	<-c.processEnded
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noMoreEvents = true
	for _, p := range c.pendingByID {
		p.ended <- c.endedError()
	}
}

// Exec runs one command, with the contract of [sandboxes.Sandbox].
func (c *Client) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if ctx.Err() != nil {
		return sandboxes.Exit{}, context.Cause(ctx)
	}
	end, err := c.commands.Begin(func(error) {}) // the command ends with the supervisor
	if err != nil {
		return sandboxes.Exit{}, err
	}
	defer end()
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: "a process", Err: errors.New("no program is named")}
	}
	pipes, err := proc.OpenPipes(cmd.Stdin, cmd.Stdout, cmd.Stderr)
	if err == nil && c.defaults.Own {
		if err = pipes.Chown(c.defaults.UID, c.defaults.GID); err != nil {
			pipes.CloseEnds()
			pipes.Abandon()
		}
	}
	if err != nil {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: err}
	}
	ends, id, p := pipes.Ends(), uint64(0), (*pending)(nil)
	if id, p, err = c.wait(); err == nil {
		defer c.forget(id)
		err = c.send(c.request(id, cmd), ends[:]...)
	}
	pipes.CloseEnds()
	if err != nil {
		pipes.Abandon()
		return sandboxes.Exit{}, c.knownReason(err)
	}
	pipes.Start()
	fed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case err := <-pipes.Failed():
			fail(fmt.Errorf("read the input of %s: %w", cmd.Argv[0], err))
		case <-fed.Done():
		}
	}()
	err = engine.Client{
		Ended:     p.ended,
		Terminate: func() { _ = c.send(request{ID: id, Op: opSignal}) },
		Kill:      func() { _ = c.send(request{ID: id, Op: opKill}) }, // an error means that the sandbox has ended
		GiveUp:    func() { c.abort(fmt.Errorf("its first process has not ended a command for %s", engine.EndLimit)) },
	}.Steer(fed, cmd)
	if fed.Err() != nil {
		err = context.Cause(fed)
	}
	pipes.Finish()
	switch {
	case ctx.Err() != nil:
		return sandboxes.Exit{}, context.Cause(ctx) // an abort takes precedence over an exit
	case c.commands.Closed() || err != nil:
		return sandboxes.Exit{}, c.knownReason(err)
	case p.end.Kind == kindRefused:
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: refusalOf(p.end)}
	}
	return sandboxes.ExitOf(p.end.Code, syscall.Signal(p.end.Signal)), nil
}

// wait registers a new command.
func (c *Client) wait() (uint64, *pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noMoreEvents {
		return 0, nil, c.endedError()
	}
	c.next++
	p := &pending{ended: make(chan error, 1)}
	c.pendingByID[c.next] = p
	return c.next, p, nil
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pendingByID, id)
}

// request builds the supervisor's request for a command.
func (c *Client) request(id uint64, cmd sandboxes.Command) request {
	r := request{ID: id, Op: opExec, Argv: cmd.Argv, Dir: c.defaults.Dir, Env: c.defaults.Env}
	if cmd.Dir != "" {
		r.Dir = cmd.Dir
		if !filepath.IsAbs(r.Dir) {
			r.Dir = filepath.Join(c.defaults.Dir, r.Dir)
		}
		r.Env = append(slices.Clip(r.Env), "PWD="+r.Dir)
	}
	r.Env = proc.LastWins(slices.Concat(r.Env, cmd.Env))
	return r
}

// send sends a request. It kills a supervisor that does not take the request within answerLimit.
func (c *Client) send(r request, files ...*os.File) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerLimit))
	err := send(c.conn, r, files...)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.abort(fmt.Errorf("its first process has taken no message for %s", answerLimit))
	}
	return err
}

// abort kills a supervisor that does not respond.
func (c *Client) abort(why error) {
	c.commands.Break(fmt.Errorf("the sandbox was killed: %w", why))
	_ = c.process.Kill()
}

// knownReason returns the known reason for an error, or the error.
func (c *Client) knownReason(err error) error {
	if c.commands.Closed() {
		return sandboxes.ErrClosed
	}
	if why := c.commands.Broken(); why != nil {
		return why
	}
	select {
	case <-c.eventsEnded:
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrClosed) {
			return c.endedError()
		}
	default:
	}
	return err
}

// refusalOf restores the kind of the supervisor's error.
func refusalOf(e event) error {
	switch e.Cause {
	case causeNotFound:
		return &startCause{e.Error, exec.ErrNotFound}
	case causePermission:
		return &startCause{e.Error, fs.ErrPermission}
	}
	return errors.New(e.Error)
}

// startCause is the text and the kind of the supervisor's error.
type startCause struct {
	text string
	kind error
}

func (e *startCause) Error() string { return e.text }
func (e *startCause) Unwrap() error { return e.kind }
