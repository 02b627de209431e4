// Package reuse keeps a process running for the next transaction, because its start costs more than the work. Its caller is
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
	idle = 300 * time.Millisecond // how long a process waits for more work: most of a run without what takes long
	life = 10 * time.Second       // how old it may get with it: git reads configuration and format of the refs once
)

// ErrEnded is the error of a process that has ended, without an error of its own, in the middle of a transaction.
var ErrEnded = errors.New("it has ended too early")

// Run runs a process that makes one transaction after the other until its input ends, and ends it when ctx ends. It answers
// "start: ok" and "commit: ok".
type Run func(ctx context.Context, in io.Reader, out io.Writer) error

// Processes keep at most one idle process. The zero value is ready for use, and safe for concurrent use.
type Processes struct {
	mu   sync.Mutex
	idle *process // guarded by mu
}

// process is owned by the caller that has taken it.
type process struct {
	kind    []string // what Run was given
	born    time.Time
	in      *io.PipeWriter
	answers chan string
	ended   chan error // what Run has returned
	cancel  context.CancelCauseFunc
	expire  *time.Timer
}

// Transact runs the commands of one transaction, each with a NUL at its end, in a process that run has started or starts now. Its
// error is that of run, ErrEnded, or context.Cause(ctx). kind names what run does: an earlier process of the same kind will do.
func (k *Processes) Transact(ctx context.Context, kind []string, run Run, commands string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := k.take(kind)
	if p == nil {
		p = start(kind, run)
	}
	begun, err := p.transact(ctx, commands)
	if err != nil && !begun && ctx.Err() == nil { // it had ended before, and has changed nothing
		p = start(kind, run)
		_, err = p.transact(ctx, commands)
	}
	if err == nil {
		k.put(p)
	}
	return err
}

func (k *Processes) take(kind []string) *process {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.idle
	if p == nil || !slices.Equal(p.kind, kind) {
		return nil
	}
	k.idle = nil
	p.expire.Stop()
	return p
}

// put keeps the process for a while.
func (k *Processes) put(p *process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.idle != nil || time.Since(p.born) > life {
		_ = p.in.Close() // always nil
		return
	}
	k.idle = p
	p.expire = time.AfterFunc(idle, func() {
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
		kind: kind, born: time.Now(), in: to, answers: make(chan string, 2), ended: make(chan error, 1), cancel: cancel,
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

// transact makes all changes or none. After an error the process must not be used again. If begun is true, an error does not tell
// whether the changes were made.
func (p *process) transact(ctx context.Context, commands string) (begun bool, err error) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(p.in, "start\x00"+commands+"commit\x00") // that it has ended shows below
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

// answer is the next one. Those that came before the end of the process count.
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
		return "", cmp.Or(context.Cause(ctx), <-p.ended) // waits for the end
	}
}
