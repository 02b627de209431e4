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

// service counts its starts and its answers.
type service struct{ starts, done atomic.Int32 }

// run answers questions that end with "?". The word "refuse" ends it with an error, "die" without one, "wait" not at all; "half"
// gets the first line of an answer.
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
		case "half":
			fmt.Fprintln(out, "begun")
		case "refuse":
			return errRefused
		case "wait":
			<-ctx.Done()
			return ctx.Err()
		case "die":
			return nil
		case "?":
			s.done.Add(1)
			fmt.Fprintln(out, "begun\nended")
		}
	}
}

// ask asks a question of words.
func (s *service) ask(ctx context.Context, k *Processes, kind, words string) error {
	return k.Ask(ctx, []string{kind}, s.run, words+"?\x00", readAnswer)
}

func readAnswer(r *bufio.Reader) error {
	for _, want := range []string{"begun\n", "ended\n"} {
		if got, err := r.ReadString('\n'); err != nil {
			return err
		} else if got != want {
			return fmt.Errorf("answer %q", got)
		}
	}
	return nil
}

// One process of each kind answers all questions. It is replaced after it has ended, or after an error of the reader.
func TestAsk(t *testing.T) {
	t.Parallel()
	var s service
	var k Processes
	for i, step := range []struct {
		kind, words  string
		err          error
		starts, done int32
	}{
		{"a", "x\x00", nil, 1, 1},
		{"a", "x\x00y\x00", nil, 1, 2},
		{"b", "", nil, 2, 3},
		{"a", "", nil, 2, 4},
		{"a", "half\x00refuse\x00", errRefused, 2, 4},
		{"a", "x\x00", nil, 3, 5},
		{"a", "half\x00die\x00", ErrEnded, 3, 5},
		{"a", "refuse\x00", errRefused, 4, 5},
		{"b", "", nil, 4, 6},
	} {
		err := s.ask(t.Context(), &k, step.kind, step.words)
		if !errors.Is(err, step.err) || s.starts.Load() != step.starts || s.done.Load() != step.done {
			t.Fatalf("step %d: %v, %d starts, %d answers", i, err, s.starts.Load(), s.done.Load())
		}
	}
	unread := func(*bufio.Reader) error { return errRefused }
	if err := k.Ask(t.Context(), []string{"b"}, s.run, "?\x00", unread); !errors.Is(err, errRefused) {
		t.Errorf("an error of the reader: %v", err)
	}
	if err := s.ask(t.Context(), &k, "b", ""); err != nil || s.starts.Load() != 5 {
		t.Errorf("after an error of the reader: %v, %d starts", err, s.starts.Load())
	}
}

// A kept process that has ended meanwhile has changed nothing: another one is started.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel()
	var s service
	var k Processes
	if err := s.ask(t.Context(), &k, "a", ""); err != nil {
		t.Fatal(err)
	}
	p := k.acquire([]string{"a"})
	_ = p.in.Close()
	<-p.ended
	k.release(p)
	if err := s.ask(t.Context(), &k, "a", ""); err != nil || s.starts.Load() != 2 || s.done.Load() != 2 {
		t.Errorf("%v, %d starts, %d answers", err, s.starts.Load(), s.done.Load())
	}
}

// A process's answer before its end counts: its question is not repeated.
func TestEndedAfterwards(t *testing.T) {
	t.Parallel()
	for range 100 {
		var s service
		var k Processes
		once := func(ctx context.Context, in io.Reader, out io.Writer) error {
			first, last := io.Pipe()
			go func() {
				_, _ = io.CopyN(last, in, int64(len("?\x00")))
				_ = last.Close()
			}()
			return s.run(ctx, first, out)
		}
		if err := k.Ask(t.Context(), nil, once, "?\x00", readAnswer); err != nil || s.done.Load() != 1 {
			t.Fatalf("%v, %d answers", err, s.done.Load())
		}
	}
}

// Concurrent questions do not wait for each other; the end of a context ends the process.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	var s service
	var k Processes
	var waits, others sync.WaitGroup
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, words := range []string{"wait\x00", "half\x00wait\x00"} {
		waits.Go(func() {
			if err := s.ask(ctx, &k, "a", words); !errors.Is(err, errRefused) {
				t.Errorf("one that waits: %v", err)
			}
		})
	}
	for range 20 {
		others.Go(func() {
			if err := s.ask(t.Context(), &k, "a", ""); err != nil {
				t.Error(err)
			}
		})
	}
	others.Wait()
	cancel(errRefused)
	waits.Wait()
	if err := s.ask(ctx, &k, "a", ""); !errors.Is(err, errRefused) {
		t.Errorf("after the end: %v", err)
	}
}

// lateContext is a context that never calls those who wait for its end, as if they were too late.
type lateContext struct{ context.Context }

func (lateContext) Value(any) any { return nil } // so that package context calls AfterFunc

func (c lateContext) AfterFunc(func()) (stop func() bool) {
	return func() bool { return c.Err() == nil }
}

// The context of a caller ends just after the answer. The process is not kept: it would be ended in the middle of the next one.
func TestEndsAfterTheAnswer(t *testing.T) {
	t.Parallel()
	var s service
	var k Processes
	inner, cancel := context.WithCancelCause(t.Context())
	ctx := lateContext{inner}
	err := k.Ask(ctx, []string{"a"}, s.run, "?\x00", func(r *bufio.Reader) error {
		err := readAnswer(r)
		cancel(nil)
		return err
	})
	if err != nil || s.done.Load() != 1 {
		t.Fatalf("%v, %d answers", err, s.done.Load())
	}
	if err := s.ask(t.Context(), &k, "a", ""); err != nil || s.starts.Load() != 2 {
		t.Errorf("%v, %d starts", err, s.starts.Load())
	}
}
