package pool_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// hangingProvider is a provider whose Open waits, like one whose engine does not answer.
type hangingProvider struct {
	*sandboxes.None
	ignoresContext bool          // it ignores its context
	only           string        // suffix of the runs whose Open waits; empty: all
	begins         chan struct{} // gets a value for each Open
	goOn           chan struct{} // closed when they are to return
	left           atomic.Int32  // number of open sandboxes
	closed         chan struct{} // gets a value for each closed sandbox
}

func newHangingProvider(deaf bool) *hangingProvider {
	return &hangingProvider{
		None: sandboxes.NewNone(sandboxes.NoneConfig{}), ignoresContext: deaf,
		begins: make(chan struct{}, 9), goOn: make(chan struct{}), closed: make(chan struct{}, 9),
	}
}

func (h *hangingProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if h.ignoresContext {
		ctx = context.WithoutCancel(ctx)
	}
	box, err := h.None.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(spec.Run, h.only) {
		return box, nil
	}
	h.begins <- struct{}{}
	select {
	case <-h.goOn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	h.left.Add(1)
	return hangingBox{box, h}, nil
}

// hangingBox is a sandbox of a hanging provider.
type hangingBox struct {
	sandboxes.Sandbox
	h *hangingProvider
}

func (b hangingBox) Close(ctx context.Context) error {
	b.h.left.Add(-1)
	defer func() { b.h.closed <- struct{}{} }()
	return b.Sandbox.Close(ctx)
}

// A stop does not wait for a sandbox that does not open, for the agent or for the gate on the base. A sandbox that opens later is
// closed.
func TestStopWhileASandboxOpens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ deaf, gate, now bool }{
		"asked":                    {},
		"asked, deaf":              {deaf: true},
		"asked, at the base":       {gate: true},
		"asked, at the base, deaf": {deaf: true, gate: true},
		"at once, deaf":            {deaf: true, now: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			h := newHangingProvider(tt.deaf)
			f.Config.Run.Sandboxes, f.Config.Run.StopGrace = h, time.Millisecond
			if tt.gate {
				f.Config.Run.Gate = lines("true")
			}
			if tt.now {
				f.Config.Run.StopGrace = time.Hour
			}
			f.issue("a")
			p := f.pool()
			stop := p.Stop
			if tt.now {
				stop = p.StopNow
			}
			go func() {
				<-h.begins
				stop("a")
			}()
			s := f.sweepBy(t.Context(), p)
			if r := f.only(s); r.Verdict.Outcome != journal.Interrupted || r.Verdict.Reason.Code != journal.ReasonAsked || r.Verdict.Counted || r.Ended.IsZero() {
				t.Errorf("%+v", r)
			}
			if close(h.goOn); tt.deaf {
				<-h.closed
			}
			if n := h.left.Load(); n != 0 {
				t.Errorf("%d sandboxes are open", n)
			}
			f.clean()
		})
	}
}

// A reviewer whose sandbox was given up has not failed: the next run asks it.
func TestStopWhileTheSandboxOfTheReviewerOpens(t *testing.T) {
	t.Parallel()
	f := newFixture(t, listens)
	h := newHangingProvider(false)
	h.only = "-review"
	f.Config.Run.Sandboxes, f.Config.Run.StopGrace = h, time.Millisecond
	f.withReviewer(yes, 2)
	p := f.pool()
	go func() {
		<-h.begins
		p.Stop("a")
	}()
	s := f.sweepBy(t.Context(), p)
	if r := f.only(s); r.Verdict.Outcome != journal.Interrupted || r.Facts.Review != nil && r.Facts.Review.Failed != "" {
		t.Errorf("%+v, %+v", r.Verdict, r.Facts.Review)
	}
	f.clean()
}

// The end of a sweep does not wait for it either. The next start removes everything that the sweep leaves.
func TestShutdownWhileASandboxOpens(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	h := newHangingProvider(true)
	f.Config.Run.Sandboxes, f.Config.Run.StopGrace = h, time.Millisecond
	f.issue("a")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	go func() {
		<-h.begins
		stop(nil)
	}()
	s := f.sweep(ctx)
	if r := f.only(s); !s.Interrupted || !r.Ended.IsZero() || r.PID != 0 {
		t.Errorf("%+v", s)
	}
	close(h.goOn)
	<-h.closed
	f.Config.Run.Sandboxes = sandboxes.NewNone(sandboxes.NoneConfig{})
	if got := outcomes(f.sweep(t.Context())); got["a"] != journal.Succeeded {
		t.Errorf("%v", got)
	}
	if r := f.runs("a")[0]; r.Verdict.Outcome != journal.Interrupted || r.Verdict.Counted {
		t.Errorf("%+v", r.Verdict)
	}
	f.clean()
}
