package container

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// session is one call of the engine's "exec", with its exchange of frames with the helper.
type session struct {
	cmd        sandboxes.Command
	toHelper   *io.PipeWriter // to the helper; closed after its report
	fromHelper *io.PipeReader
	out        *inside.FrameWriter
	errs       *proc.Tail    // error output of the engine's client and the helper
	credit     chan struct{} // one for each input frame that may be sent

	commandStarted chan struct{} // closed when the command has started
	reported       chan struct{} // closed when the report or refusal has arrived
	clientEnded    chan struct{} // closed when the engine's client has ended
	active         atomic.Bool   // a frame has arrived since the last check

	// Written by the decoding goroutine, and read after the client has ended.
	started bool
	refused *inside.Refusal
	report  *inside.Report
	failed  [2]bool // writers that have failed
	killed  bool    // a signal has killed the helper

	mu           sync.Mutex
	inputReadErr error // guarded by mu; read error of the input
}

func newSession(cmd sandboxes.Command) *session {
	s := &session{
		cmd: cmd, errs: proc.NewTail(4 << 10), credit: make(chan struct{}, inside.Window),
		commandStarted: make(chan struct{}), reported: make(chan struct{}), clientEnded: make(chan struct{}),
	}
	for range inside.Window {
		s.credit <- struct{}{}
	}
	s.fromHelper, s.toHelper = io.Pipe()
	s.out = &inside.FrameWriter{W: s.toHelper}
	return s
}

// run returns when all processes of the command have ended. The error is nil if its report or refusal has arrived.
func (s *session) run(ctx, client context.Context, b *box, text []byte) error {
	client, stop := context.WithCancelCause(client)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	watching.Go(func() { b.watch(client, &s.active, stop) })
	p := b.provider
	argv := append([]string{"exec", "--interactive", b.name}, helper(inside.Exec)...)
	if p.config.unfiltered() {
		argv = append(argv, inside.Unfiltered)
	}
	decode := &inside.FrameReader{On: s.receive}
	ended := make(chan error, 1)
	go func() {
		exit, err := proc.Run(client, proc.Spec{
			Argv: p.program().Argv(argv...), Dir: "/", Env: p.config.HostEnv, Stdin: s.fromHelper, Stdout: decode, Stderr: s.errs,
		})
		s.killed = helperWasKilled(exit)
		_ = s.fromHelper.Close() // ends a goroutine that still sends
		close(s.clientEnded)
		ended <- err
	}()
	go s.send(inside.FrameCommand, text)
	go s.feed()

	err := engine.Client{
		Ended: ended, Reported: s.reported,
		Terminate: func() { go s.send(inside.FrameTerminate, nil) },
		Kill:      func() { go s.send(inside.FrameKill, nil) },
		Dismiss:   func() { _ = s.toHelper.Close() }, // the helper waits for this
		GiveUp: func() {
			why := errors.New("the engine's client does not end")
			select {
			case <-s.reported:
			default: // the command does not end, so its container must
				why = cmp.Or(b.abort(fmt.Errorf("%s in the %s sandbox did not exit after SIGKILL; the sandbox was killed", s.cmd.Argv[0], p.engine.Name)), why)
			}
			stop(why)
		},
		Limit: p.timeouts.end,
	}.Steer(ctx, s.cmd)
	switch {
	case s.report != nil || s.refused != nil:
		return nil
	case err != nil:
		return p.program().StartError(err)
	case decode.Err != nil:
		return decode.Err
	case s.killed:
		return sandboxes.ErrKilledInside
	}
	return errNoReport
}

// helperWasKilled reports whether a signal has killed the helper, whose status the engine's client, itself alive, has passed on.
func helperWasKilled(client proc.Exit) bool {
	const highest = 64 // highest signal number
	return client.Signal == 0 && client.Code > 128 && client.Code <= 128+highest
}

// send sends a frame. It ignores an error, which run notices when the client ends.
func (s *session) send(kind byte, payload []byte) { _ = s.out.Send(kind, payload) }

// receive handles a frame of the helper.
func (s *session) receive(kind byte, payload []byte) error {
	s.active.Store(true)
	switch kind {
	case inside.FrameStarted:
		if !s.started {
			s.started = true
			close(s.commandStarted)
		}
	case inside.FrameStdout:
		s.writeOutput(0, s.cmd.Stdout, payload)
	case inside.FrameStderr:
		s.writeOutput(1, s.cmd.Stderr, payload)
	case inside.FrameTaken:
		select {
		case s.credit <- struct{}{}:
		default:
		}
	case inside.FrameExit, inside.FrameRefused:
		if s.report != nil || s.refused != nil {
			return errors.New("the helper has reported twice")
		}
		var err error
		if kind == inside.FrameExit {
			s.report = &inside.Report{}
			err = json.Unmarshal(payload, s.report)
		} else {
			s.refused = &inside.Refusal{}
			err = json.Unmarshal(payload, s.refused)
		}
		if err != nil {
			s.report, s.refused = nil, nil
			return fmt.Errorf("read the helper's report: %w", err)
		}
		close(s.reported)
	}
	return nil
}

// writeOutput writes output until the writer fails.
func (s *session) writeOutput(i int, w io.Writer, p []byte) {
	if w == nil || s.failed[i] {
		return
	}
	if _, err := w.Write(p); err != nil {
		s.failed[i] = true
	}
}

// feed sends the command's input after the command has started: if the command must be sent again, no input may be lost. A
// Read that still blocks after the end of the command is abandoned.
func (s *session) feed() {
	select {
	case <-s.commandStarted:
	case <-s.clientEnded:
		return
	}
	if s.cmd.Stdin == nil {
		s.send(inside.FrameInputEnd, nil)
		return
	}
	buf := make([]byte, inside.Chunk)
	for {
		n, err := s.cmd.Stdin.Read(buf)
		if n > 0 {
			select {
			case <-s.credit:
			case <-s.clientEnded:
				return
			}
			if s.out.Send(inside.FrameInput, buf[:n]) != nil {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			s.send(inside.FrameInputEnd, nil)
			return
		case err != nil:
			s.mu.Lock()
			s.inputReadErr = err
			s.mu.Unlock()
			s.send(inside.FrameKill, nil) // the command must not mistake a truncated input for a complete one
			return
		}
	}
}

func (s *session) inputErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inputReadErr
}
