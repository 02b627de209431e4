package workspace

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// deaf is a provider, and its sandbox, whose calls except Open only wait for goOn. They signal that they have begun.
type deaf struct {
	sandboxes.Provider
	begun func()
	goOn  chan struct{}
}

func (d deaf) Open(context.Context, sandboxes.Spec) (sandboxes.Sandbox, error) { return d, nil }

func (deaf) Workdir() string { return "/" }

func (d deaf) Check(context.Context) error {
	d.begun()
	<-d.goOn
	return nil
}

func (d deaf) Reap(context.Context, string) error {
	d.begun()
	<-d.goOn
	return nil
}

func (d deaf) Close(context.Context) error {
	d.begun()
	<-d.goOn
	return nil
}

func (d deaf) Exec(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	d.begun()
	<-d.goOn
	if cmd.Stdout != nil {
		_, _ = cmd.Stdout.Write([]byte("late"))
	}
	return sandboxes.Exit{}, nil
}

// A call that ignores its context is given up, soon if the run is to end. What it does later reaches nobody.
func TestCallsThatHang(t *testing.T) {
	t.Parallel()
	const grace = 30 * time.Second
	errTimer := errors.New("the timer")
	exec := func(ctx context.Context, w *Workspace) error {
		var out strings.Builder
		_, err := w.Sandbox.Exec(ctx, sandboxes.Command{Stdout: &out, Stderr: &out, Interrupt: w.Asked.Done(), Grace: grace})
		if _, again := w.Sandbox.Exec(t.Context(), sandboxes.Command{}); again == nil {
			t.Error("another command runs")
		}
		t.Cleanup(func() {
			if out.Len() > 0 {
				t.Errorf("late output: %s", out.String())
			}
		})
		return err
	}
	for name, tt := range map[string]struct {
		call  func(context.Context, *Workspace) error
		cause error // of the end of the context; nil: the run is asked to end
		want  time.Duration
	}{
		"Exec, timer":         {exec, errTimer, halt.StageLimit},
		"Exec, killed":        {exec, halt.Error(journal.StopShutdown, ""), halt.Moment},
		"Exec, asked to end":  {exec, nil, grace + halt.Moment},
		"Check, asked to end": {func(ctx context.Context, w *Workspace) error { return w.CheckProvider(ctx) }, nil, grace + halt.Moment},
		"Close, asked to end": {func(ctx context.Context, w *Workspace) error {
			if told := w.CloseSandbox(ctx); len(told) == 0 || !w.Unclosed {
				t.Errorf("%v", told)
			}
			return &silentError{}
		}, nil, grace + halt.Moment},
		"Reap, killed":           {func(ctx context.Context, w *Workspace) error { return w.reap(ctx) }, halt.Error(journal.StopShutdown, ""), halt.Moment},
		"Reap, asked to end":     {func(ctx context.Context, w *Workspace) error { return w.reap(ctx) }, nil, 2 * halt.Moment},
		"Close, without a limit": {func(ctx context.Context, w *Workspace) error { return w.Sandbox.Close(ctx) }, nil, closeLimit + halt.Moment},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := make(chan time.Time, 1)
				asked, ask := context.WithCancelCause(t.Context())
				defer ask(nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				d := deaf{sandboxes.NewNone(sandboxes.NoneConfig{}), sync.OnceFunc(func() {
					begun <- time.Now() // steps before it read the real processes of this machine
					if tt.cause != nil {
						cancel(tt.cause)
					} else {
						ask(nil)
					}
				}), make(chan struct{})}
				w := &Workspace{c: &Config{Sandboxes: d, StopGrace: grace, Log: slog.New(slog.DiscardHandler)}, id: "run", Asked: asked, Meter: gateway.NewMeter(gateway.Network{}, "run")}
				if err := w.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				err := tt.call(ctx, w)
				silent, ok := errors.AsType[*silentError](err)
				if got := time.Since(<-begun); got != tt.want || !ok || tt.cause != nil && !errors.Is(silent, tt.cause) {
					t.Errorf("after %s: %v", got, err)
				}
				close(d.goOn)
				synctest.Wait()
				_ = w.Gateway.Close()
			})
		})
	}
}

// stuck accepts no output until it is closed.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

// writing is a sandbox whose commands do not end until their output is read.
type writing struct{ sandboxes.Sandbox }

func (writing) Exec(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	_, err := cmd.Stdout.Write([]byte("x"))
	return sandboxes.Exit{}, err
}

// A command whose output nobody reads, for example into a waiting pager, is given up, too.
func TestOutputThatNobodyTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := make(stuck)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(halt.Error(journal.StopShutdown, ""))
		start := time.Now()
		_, err := (&boundedSandbox{Sandbox: writing{}}).Exec(ctx, sandboxes.Command{Stdout: out})
		if _, ok := errors.AsType[*silentError](err); !ok || time.Since(start) > 2*halt.Moment {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		close(out)
		synctest.Wait()
	})
}
