package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// session is one call of the engine's "exec" and the talk with the helper that it starts.
type session struct {
	cmd    sandboxes.Command
	toward *io.PipeWriter // to the helper; closed when its last word has come
	from   *io.PipeReader
	send   *frameWriter
	errs   *proc.Tail    // what the engine's client and the helper complain about
	credit chan struct{} // one for each input frame that may be sent

	begun  chan struct{} // closed when the command has started
	spoken chan struct{} // closed when the last word has come
	gone   chan struct{} // closed when the engine's client has ended
	heard  atomic.Bool   // the helper has said something since somebody last looked

	// Written by the one goroutine that decodes, and read after the client's end.
	started bool
	refused *refusal
	report  *report
	deaf    [2]bool // writers that have failed

	mu       sync.Mutex
	inputBad error // guarded by mu; why the input ended early
}

func newSession(cmd sandboxes.Command) *session {
	s := &session{
		cmd: cmd, errs: proc.NewTail(4 << 10), credit: make(chan struct{}, window),
		begun: make(chan struct{}), spoken: make(chan struct{}), gone: make(chan struct{}),
	}
	for range window {
		s.credit <- struct{}{}
	}
	s.from, s.toward = io.Pipe()
	s.send = &frameWriter{w: s.toward}
	return s
}

// run returns when nothing of the command is left, with nil when its report or refusal has come.
func (s *session) run(ctx, client context.Context, b *box, text []byte) error {
	client, stop := context.WithCancelCause(client)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop(nil)
	listening.Go(func() { b.listen(client, &s.heard, stop) })
	p := b.provider
	argv := append([]string{"exec", "--interactive", b.name, helperPath}, p.config.Helper.Args...)
	argv = append(argv, insideExec)
	if p.config.unfiltered() {
		argv = append(argv, insideFree)
	}
	decode := &frameReader{on: s.hear}
	ended := make(chan error, 1)
	go func() {
		_, err := proc.Run(client, proc.Spec{
			Argv: p.engine.argv(argv...), Dir: "/", Env: p.config.HostEnv,
			Stdin: s.from, Stdout: decode, Stderr: s.errs,
		})
		_ = s.from.Close() // whoever still sends to it stops
		close(s.gone)
		ended <- err
	}()
	go func() { _ = s.send.send(frameCommand, text) }()
	go s.feed()

	err := s.steer(ctx, b, ended, stop)
	switch {
	case s.report != nil || s.refused != nil:
		return nil
	case err != nil:
		return p.startError(err)
	case decode.err != nil:
		return decode.err
	}
	return errNoReport
}

// steer passes on what has to end the command, and waits for the engine's client.
func (s *session) steer(ctx context.Context, b *box, ended <-chan error, stop context.CancelCauseFunc) error {
	interrupt, over, spoken := s.cmd.Interrupt, ctx.Done(), s.spoken
	var grace, limit <-chan time.Time
	arm := func(t *<-chan time.Time, d time.Duration) {
		*t = time.After(d) // freed with its channel
	}
	for {
		select {
		case err := <-ended:
			return err
		case <-spoken:
			spoken, interrupt, over, grace = nil, nil, nil, nil
			_ = s.toward.Close() // the helper waits for this, and goes
			arm(&limit, endLimit)
		case <-interrupt:
			interrupt = nil
			go func() { _ = s.send.send(frameTerminate, nil) }()
			d := s.cmd.Grace
			if d <= 0 {
				d = proc.DefaultGrace
			}
			arm(&grace, d)
		case <-grace:
			grace = nil
			go func() { _ = s.send.send(frameKill, nil) }()
			arm(&limit, endLimit)
		case <-over:
			over, interrupt, grace = nil, nil, nil
			go func() { _ = s.send.send(frameKill, nil) }()
			arm(&limit, endLimit)
		case <-limit:
			limit = nil
			if spoken != nil { // what is inside does not end: the container has to
				b.giveUp(fmt.Errorf("%s in the %s sandbox outlived its killing; the sandbox was ended", s.cmd.Argv[0], b.provider.engine.Name))
			}
			stop(errors.New("the engine's client does not end"))
		}
	}
}

// hear takes what the helper says.
func (s *session) hear(kind byte, payload []byte) error {
	s.heard.Store(true)
	switch kind {
	case frameStarted:
		if !s.started {
			s.started = true
			close(s.begun)
		}
	case frameStdout:
		s.pass(0, s.cmd.Stdout, payload)
	case frameStderr:
		s.pass(1, s.cmd.Stderr, payload)
	case frameTaken:
		select {
		case s.credit <- struct{}{}:
		default:
		}
	case frameExit, frameRefused:
		if s.report != nil || s.refused != nil {
			return errors.New("the helper speaks after its last word")
		}
		var err error
		if kind == frameExit {
			s.report = &report{}
			err = json.Unmarshal(payload, s.report)
		} else {
			s.refused = &refusal{}
			err = json.Unmarshal(payload, s.refused)
		}
		if err != nil {
			s.report, s.refused = nil, nil
			return fmt.Errorf("read the helper's last word: %w", err)
		}
		close(s.spoken)
	}
	return nil
}

// pass writes output on, until the writer fails.
func (s *session) pass(i int, w io.Writer, p []byte) {
	if w == nil || s.deaf[i] {
		return
	}
	if _, err := w.Write(p); err != nil {
		s.deaf[i] = true
	}
}

// feed sends the command's input, once it has started: a command that has to be sent again must find its input whole.
// A Read that blocks past the command's end is abandoned.
func (s *session) feed() {
	select {
	case <-s.begun:
	case <-s.gone:
		return
	}
	if s.cmd.Stdin == nil {
		_ = s.send.send(frameInputEnd, nil)
		return
	}
	buf := make([]byte, chunk)
	for {
		n, err := s.cmd.Stdin.Read(buf)
		if n > 0 {
			select {
			case <-s.credit:
			case <-s.gone:
				return
			}
			if s.send.send(frameInput, buf[:n]) != nil {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = s.send.send(frameInputEnd, nil)
			return
		case err != nil:
			s.mu.Lock()
			s.inputBad = err
			s.mu.Unlock()
			_ = s.send.send(frameKill, nil) // it must not take half its input for the whole
			return
		}
	}
}

func (s *session) inputErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inputBad
}
