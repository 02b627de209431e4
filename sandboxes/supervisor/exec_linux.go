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
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// defaultGrace is the time from asking a command to end to killing it.
const defaultGrace = 10 * time.Second

// ErrEnded is returned by Exec when the supervisor has ended although nobody has closed it.
var ErrEnded = errors.New("the sandbox has ended by itself: its first process was killed, perhaps for lack of memory")

// listen passes on events until the supervisor ends. An event that belongs to no command is dropped.
func (c *Client) listen() {
	defer close(c.heard)
	buf := make([]byte, maxEvent)
	for {
		e, err := c.hear(buf)
		if err != nil {
			if !c.isClosed() {
				_ = c.process.Kill()
			}
			return
		}
		c.mu.Lock()
		answer := c.waiting[e.ID]
		if e.Kind == kindKilled {
			c.killed[e.Cause]++
		}
		if e.Kind == kindExited || e.Kind == kindRefused {
			delete(c.waiting, e.ID)
		} else {
			answer = nil
		}
		c.mu.Unlock()
		if answer != nil {
			answer <- e // has room for one
		}
	}
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Exec runs one command, with the contract of [sandboxes.Sandbox].
func (c *Client) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if ctx.Err() != nil {
		return sandboxes.Exit{}, context.Cause(ctx)
	}
	id, answer, err := c.enter()
	if err != nil {
		return sandboxes.Exit{}, err
	}
	defer c.leave(id)
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: "a process", Err: errors.New("no program is named")}
	}
	pipes, err := proc.OpenPipes(cmd.Stdin, cmd.Stdout, cmd.Stderr)
	if err == nil && c.commands.Own {
		if err = pipes.Chown(c.commands.UID, c.commands.GID); err != nil {
			pipes.CloseEnds()
			pipes.Abandon()
		}
	}
	if err != nil {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: err}
	}
	ends := pipes.Ends()
	err = c.send(c.request(id, cmd), ends[:]...)
	pipes.CloseEnds()
	if err != nil {
		pipes.Abandon()
		return sandboxes.Exit{}, c.because(err)
	}
	pipes.Start()
	e, err := c.await(ctx, &cmd, id, answer, pipes)
	pipes.Finish()
	if ctx.Err() != nil {
		return sandboxes.Exit{}, context.Cause(ctx) // an abort counts before an exit
	}
	switch {
	case c.isClosed():
		return sandboxes.Exit{}, sandboxes.ErrClosed
	case err != nil:
		return sandboxes.Exit{}, c.because(err)
	case e.Kind == kindRefused:
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: refusalOf(e)}
	}
	return exitOf(e), nil
}

// enter makes room for a command's answer.
func (c *Client) enter() (uint64, chan event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, nil, sandboxes.ErrClosed
	}
	c.next++
	answer := make(chan event, 1)
	c.waiting[c.next] = answer
	c.running.Add(1)
	return c.next, answer, nil
}

func (c *Client) leave(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
	c.running.Done()
}

// request describes a command to the supervisor.
func (c *Client) request(id uint64, cmd sandboxes.Command) request {
	r := request{ID: id, Op: opExec, Argv: cmd.Argv, Dir: c.commands.Dir, Env: c.commands.Env}
	if cmd.Dir != "" {
		r.Dir = cmd.Dir
		if !filepath.IsAbs(r.Dir) {
			r.Dir = filepath.Join(c.commands.Dir, r.Dir)
		}
		r.Env = append(slices.Clip(r.Env), "PWD="+r.Dir)
	}
	r.Env = proc.LastWins(slices.Concat(r.Env, cmd.Env))
	return r
}

// send sends a request, which the supervisor has to take within a bounded time.
func (c *Client) send(r request, files ...*os.File) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerLimit))
	err := send(c.conn, r, files...)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.breakUp(fmt.Errorf("its first process has taken no message for %s", answerLimit))
	}
	return err
}

// await returns the answer, or why there is none. The command has then been killed with all it started, or the whole
// sandbox.
func (c *Client) await(ctx context.Context, cmd *sandboxes.Command, id uint64, answer <-chan event, pipes *proc.Pipes) (e event, err error) {
	interrupt, done, failed := cmd.Interrupt, ctx.Done(), pipes.Failed()
	var grace, patience <-chan time.Time
	kill := func() {
		interrupt, done, failed, grace = nil, nil, nil, nil
		patience = time.After(answerLimit)
		_ = c.send(request{ID: id, Op: opKill}) // when it fails, the sandbox has ended
	}
	for {
		select {
		case e = <-answer:
			return e, err
		case <-c.heard:
			select {
			case e = <-answer: // it came before the end
				return e, err
			default:
			}
			if err == nil {
				err = ErrEnded
			}
			<-c.gone
			return e, err
		case <-done:
			err = context.Cause(ctx)
			kill()
		case cause := <-failed:
			err = fmt.Errorf("read the input of %s: %w", cmd.Argv[0], cause)
			kill()
		case <-interrupt:
			interrupt = nil
			_ = c.send(request{ID: id, Op: opSignal})
			d := cmd.Grace
			if d <= 0 {
				d = defaultGrace
			}
			grace = time.After(d)
		case <-grace:
			kill()
		case <-patience:
			c.breakUp(fmt.Errorf("its first process has not ended a command for %s", answerLimit))
		}
	}
}

// breakUp kills a supervisor that does not do its work.
func (c *Client) breakUp(why error) {
	c.mu.Lock()
	c.broken = errors.Join(c.broken, why)
	c.mu.Unlock()
	_ = c.process.Kill()
}

// because prefers the reason that is known here.
func (c *Client) because(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return sandboxes.ErrClosed
	}
	if c.broken != nil {
		return fmt.Errorf("the sandbox was killed: %w", c.broken)
	}
	select {
	case <-c.heard:
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrClosed) {
			return ErrEnded
		}
	default:
	}
	return err
}

// refusalOf restores the kind of error that the supervisor met.
func refusalOf(e event) error {
	switch e.Cause {
	case causeNotFound:
		return &startCause{e.Error, exec.ErrNotFound}
	case causePermission:
		return &startCause{e.Error, fs.ErrPermission}
	}
	return errors.New(e.Error)
}

// startCause is an error of the other side: its text and its kind.
type startCause struct {
	text string
	kind error
}

func (e *startCause) Error() string { return e.text }
func (e *startCause) Unwrap() error { return e.kind }

func exitOf(e event) sandboxes.Exit {
	exit := sandboxes.Exit{Code: e.Code}
	if e.Signal != 0 {
		exit.Code = 128 + e.Signal
		exit.Signal = unix.SignalName(unix.Signal(e.Signal))
		if exit.Signal == "" { // real-time signals have no name
			exit.Signal = fmt.Sprintf("SIG%d", e.Signal)
		}
	}
	return exit
}
