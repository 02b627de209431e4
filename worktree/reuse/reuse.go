// Package reuse keeps a process for the next transaction, because starting one costs more than its work. Its caller is
// package git.
package reuse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

const (
	idleTimeout = 300 * time.Millisecond // how long an idle process is kept: longer than most gaps in a run without slow steps
	maxAge      = 10 * time.Second       // maximum age of a reused process: git reads its configuration and the format of the refs only once
)

// ErrEnded means that a process ended without an error in the middle of a transaction.
var ErrEnded = errors.New("it has ended too early")

// Run runs a process that executes transactions one after the other until its input or ctx ends. The process answers
// "start: ok" and "commit: ok".
type Run func(ctx context.Context, in io.Reader, out io.Writer) error

// Processes keeps at most one idle process. The zero value is ready for use, and safe for concurrent use.
type Processes struct {
	mu   sync.Mutex
	idle *process // guarded by mu
}

// process belongs to the caller that has taken it.
type process struct {
	key     []string // the kind passed to Transact
	started time.Time
	in      *io.PipeWriter
	answers chan string
	ended   chan error // the result of Run
	cancel  context.CancelCauseFunc
	expire  *time.Timer
}

// Transact runs the commands of one transaction, each ending in NUL, in an idle process or a new one that run starts. It
// returns the error of run, ErrEnded, or context.Cause(ctx). kind identifies what run does: an idle process of the same
// kind is reused.
func (k *Processes) Transact(ctx context.Context, kind []string, run Run, commands string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := k.acquire(kind)
	if p == nil {
		p = start(kind, run)
	}
	begun, err := p.transact(ctx, commands)
	if err != nil && !begun && ctx.Err() == nil { // the process had ended before, and has changed nothing
		p = start(kind, run)
		_, err = p.transact(ctx, commands)
	}
	if err == nil {
		k.release(p)
	}
	return err
}

func (k *Processes) acquire(kind []string) *process {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.idle
	if p == nil || !slices.Equal(p.key, kind) {
		return nil
	}
	k.idle = nil
	p.expire.Stop()
	return p
}

// release keeps the process for reuse.
func (k *Processes) release(p *process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.idle != nil || time.Since(p.started) > maxAge {
		_ = p.in.Close() // always nil
		return
	}
	k.idle = p
	p.expire = time.AfterFunc(idleTimeout, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.idle == p {
			k.idle = nil
			_ = p.in.Close() // always nil
		}
	})
}

func start(kind []string, run Run) *process {
	ctx, cancel := context.WithCancelCause(context.Background())
	from, to := io.Pipe()
	p := &process{
		key: kind, started: time.Now(), in: to, answers: make(chan string, 2), ended: make(chan error, 1), cancel: cancel,
	}
	lines := proc.NewExactLines(func(line []byte) {
		select {
		case p.answers <- string(line):
		case <-ctx.Done():
		}
	})
	go func() {
		err := run(ctx, from, lines)
		_ = from.CloseWithError(io.ErrClosedPipe) // always nil
		p.ended <- err
		cancel(nil)
	}()
	return p
}

// transact makes all changes or none. After an error the process must not be used again. If begun is true, an error leaves
// open whether the changes were made.
func (p *process) transact(ctx context.Context, commands string) (begun bool, err error) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(p.in, "start\x00"+commands+"commit\x00") // an ended process is detected below
	}()
	defer func() {
		if err != nil {
			p.cancel(err)
			_ = p.in.Close() // always nil
		}
		<-written
	}()
	for _, want := range []string{"start: ok", "commit: ok"} {
		answer, err := p.answer(ctx)
		if err != nil {
			return begun, err
		}
		if answer != want {
			return begun, fmt.Errorf("unexpected answer %q", answer)
		}
		begun = true
	}
	return begun, nil
}

// answer returns the next answer. It also returns answers that came before the process ended.
func (p *process) answer(ctx context.Context) (string, error) {
	select {
	case answer := <-p.answers:
		return answer, nil
	case err := <-p.ended:
		p.ended <- err // for the next call
		select {
		case answer := <-p.answers:
			return answer, nil
		default:
			return "", cmp.Or(err, ErrEnded)
		}
	case <-ctx.Done():
		p.cancel(context.Cause(ctx))
		return "", cmp.Or(context.Cause(ctx), <-p.ended) // wait for the end
	}
}
