package reuse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errRefused = errors.New("refused")

// service counts its starts and its transactions.
type service struct{ starts, done atomic.Int32 }

// run takes transactions. The transaction "refuse" ends it with an error, "die" without one; "wait" is never answered.
func (s *service) run(ctx context.Context, in io.Reader, out io.Writer) error {
	s.starts.Add(1)
	go func() {
		<-ctx.Done()
		_ = in.(*io.PipeReader).CloseWithError(ctx.Err())
	}()
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString(0)
		if err != nil {
			return nil //nolint:nilerr // the end
		}
		switch strings.TrimSuffix(line, "\x00") {
		case "start":
			fmt.Fprintln(out, "start: ok")
		case "refuse":
			return errRefused
		case "wait":
			<-ctx.Done()
			return ctx.Err()
		case "die":
			return nil
		case "commit":
			s.done.Add(1)
			fmt.Fprintln(out, "commit: ok")
		}
	}
}

// One process executes all transactions of its kind. It is replaced after it has ended or refused a transaction.
func TestTransact(t *testing.T) {
	t.Parallel()
	var s service
	var k Processes
	for i, step := range []struct {
		kind, commands string
		err            error
		starts, done   int32
	}{
		{"a", "x\x00", nil, 1, 1},
		{"a", "x\x00y\x00", nil, 1, 2},
		{"a", "refuse\x00", errRefused, 1, 2},
		{"a", "x\x00", nil, 2, 3},
		{"a", "die\x00", ErrEnded, 2, 3},
		{"a", "", nil, 3, 4},
		{"b", "", nil, 4, 5},
	} {
		err := k.Transact(t.Context(), []string{step.kind}, s.run, step.commands)
		if !errors.Is(err, step.err) || s.starts.Load() != step.starts || s.done.Load() != step.done {
			t.Fatalf("step %d: %v, %d starts, %d transactions", i, err, s.starts.Load(), s.done.Load())
		}
	}
}

// A kept process that has ended meanwhile has changed nothing: another one is started.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel()
	var s service
	var k Processes
	if err := k.Transact(t.Context(), nil, s.run, ""); err != nil {
		t.Fatal(err)
	}
	p := k.acquire(nil)
	_ = p.in.Close()
	p.ended <- <-p.ended
	k.release(p)
	if err := k.Transact(t.Context(), nil, s.run, ""); err != nil || s.starts.Load() != 2 || s.done.Load() != 2 {
		t.Errorf("%v, %d starts, %d transactions", err, s.starts.Load(), s.done.Load())
	}
}

// A process's answer before its end counts: its transaction is not repeated.
func TestEndedAfterwards(t *testing.T) {
	t.Parallel()
	for range 100 {
		var s service
		var k Processes
		once := func(ctx context.Context, in io.Reader, out io.Writer) error {
			first, last := io.Pipe()
			go func() {
				_, _ = io.CopyN(last, in, int64(len("start\x00commit\x00")))
				_ = last.Close()
			}()
			return s.run(ctx, first, out)
		}
		if err := k.Transact(t.Context(), nil, once, ""); err != nil || s.done.Load() != 1 {
			t.Fatalf("%v, %d transactions", err, s.done.Load())
		}
	}
}

// Concurrent transactions do not wait for each other; the end of a context ends the process.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	var s service
	var k Processes
	var waits, others sync.WaitGroup
	ctx, cancel := context.WithCancelCause(t.Context())
	waits.Go(func() {
		if err := k.Transact(ctx, nil, s.run, "wait\x00"); !errors.Is(err, errRefused) {
			t.Errorf("one that waits: %v", err)
		}
	})
	for range 20 {
		others.Go(func() {
			if err := k.Transact(t.Context(), nil, s.run, ""); err != nil {
				t.Error(err)
			}
		})
	}
	others.Wait()
	cancel(errRefused)
	waits.Wait()
	if err := k.Transact(ctx, nil, s.run, ""); !errors.Is(err, errRefused) {
		t.Errorf("after the end: %v", err)
	}
}
