// Package reuse keeps processes for the next question, because starting one costs more than its work. Its caller is package git.
package reuse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

const (
	idleTimeout = 300 * time.Millisecond // how long an idle process is kept: longer than most gaps in a run without slow steps
	maxAge      = 10 * time.Second       // maximum age of a reused process: git reads its configuration and the format of the refs only once
	maxIdle     = 16                     // idle processes of all kinds
)

// ErrEnded means that a process ended without an error in the middle of an answer.
var ErrEnded = errors.New("it has ended too early")

// Run runs a process that answers questions one after the other until its input or ctx ends.
type Run func(ctx context.Context, in io.Reader, out io.Writer) error

// Processes keeps some idle processes. The zero value is ready for use, and safe for concurrent use.
type Processes struct {
	mu   sync.Mutex
	idle []*process // guarded by mu
}

// process belongs to the caller that has taken it.
type process struct {
	kind    []string // the kind passed to Ask
	started time.Time
	in      *io.PipeWriter
	out     *io.PipeReader // ends with the error of Run
	answers *bufio.Reader  // reads out
	cancel  context.CancelCauseFunc
	ended   chan struct{}
	expire  *time.Timer
}

// Ask writes a question to an idle process or to a new one that run starts, and passes its output to read, which reads exactly
// the answer. It returns the error of read or run, ErrEnded, or context.Cause(ctx). kind identifies what run does: an idle
// process of the same kind is reused.
func (k *Processes) Ask(ctx context.Context, kind []string, run Run, question string, read func(*bufio.Reader) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := k.acquire(kind)
	reused := p != nil
	if !reused {
		p = start(kind, run)
	}
	begun, err := p.ask(ctx, question, read)
	if err != nil && reused && !begun && ctx.Err() == nil { // the process had ended before, and has changed nothing
		p = start(kind, run)
		_, err = p.ask(ctx, question, read)
	}
	switch {
	case err != nil:
	case ctx.Err() != nil: // it is being ended
		p.close()
	default:
		k.release(p)
	}
	return err
}

func (k *Processes) acquire(kind []string) *process {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.idle, func(p *process) bool { return slices.Equal(p.kind, kind) })
	if i < 0 {
		return nil
	}
	p := k.idle[i]
	k.idle = slices.Delete(k.idle, i, i+1)
	p.expire.Stop()
	return p
}

// release keeps the process for reuse.
func (k *Processes) release(p *process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.idle) >= maxIdle || time.Since(p.started) > maxAge {
		p.close()
		return
	}
	k.idle = append(k.idle, p)
	p.expire = time.AfterFunc(idleTimeout, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if i := slices.Index(k.idle, p); i >= 0 {
			k.idle = slices.Delete(k.idle, i, i+1)
			p.close()
		}
	})
}

func start(kind []string, run Run) *process {
	ctx, cancel := context.WithCancelCause(context.Background())
	from, in := io.Pipe()
	out, to := io.Pipe()
	p := &process{
		kind: kind, started: time.Now(), in: in, out: out, answers: bufio.NewReaderSize(out, 16<<10), cancel: cancel, ended: make(chan struct{}),
	}
	go func() {
		defer close(p.ended)
		err := run(ctx, from, to)
		_ = to.CloseWithError(err)                // always nil
		_ = from.CloseWithError(io.ErrClosedPipe) // always nil
		cancel(nil)
	}()
	return p
}

// close lets an idle process end.
func (p *process) close() {
	_ = p.in.Close()  // always nil
	_ = p.out.Close() // always nil
}

// ask returns after an error only when the process has ended. If begun is true, an error leaves open what the process has done.
func (p *process) ask(ctx context.Context, question string, read func(*bufio.Reader) error) (begun bool, err error) {
	stop := context.AfterFunc(ctx, func() { p.cancel(context.Cause(ctx)) })
	defer stop()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(p.in, question) // an ended process is detected below
	}()
	if _, err = p.answers.Peek(1); err == nil {
		begun = true
		err = read(p.answers)
	}
	if err != nil {
		p.cancel(err)
		p.close()
		<-p.ended
	}
	<-written
	switch {
	case err == nil:
		return begun, nil
	case ctx.Err() != nil:
		return begun, context.Cause(ctx)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return begun, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return begun, err
}
