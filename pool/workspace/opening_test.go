package workspace

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// opening is a provider whose Open waits.
type opening struct {
	sandboxes.Provider
	deaf bool          // it ignores its context
	open chan struct{} // closed when Open may continue
	box  *closing
}

func (o *opening) Open(ctx context.Context, _ sandboxes.Spec) (sandboxes.Sandbox, error) {
	if o.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-o.open:
		return o.box, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// closing is a sandbox that signals when it is closed.
type closing struct {
	sandboxes.Sandbox
	closed chan struct{}
}

func (c *closing) Close(context.Context) error {
	close(c.closed)
	return nil
}

// Nobody waits for a sandbox that does not open once its run is asked to end, or has to end at once. A sandbox that opens later
// is closed.
func TestOpenThatHangs(t *testing.T) {
	t.Parallel()
	const grace = 30 * time.Second
	killed := halt.Error(journal.StopShutdown, "")
	for name, tt := range map[string]struct {
		deaf, now bool
		want      time.Duration // after the request to end
	}{
		"asked to end":         {want: grace},
		"asked to end, deaf":   {deaf: true, want: grace + halt.Moment},
		"to end at once":       {now: true},
		"to end at once, deaf": {deaf: true, now: true, want: halt.Moment},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &opening{
					Provider: sandboxes.NewNone(sandboxes.NoneConfig{}), deaf: tt.deaf, open: make(chan struct{}), box: &closing{closed: make(chan struct{})},
				}
				asked, ask := context.WithCancelCause(t.Context())
				defer ask(nil)
				w := &Workspace{c: &Config{Sandboxes: p, StopGrace: grace, Log: slog.New(slog.DiscardHandler)}, id: "run", Asked: asked}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				start := time.Now()
				if tt.now {
					cancel(killed)
				} else {
					ask(nil)
				}
				err := w.Open(ctx)
				if err == nil || time.Since(start) != tt.want || w.Hung != tt.deaf || w.Sandbox != nil {
					t.Fatalf("after %s: %v, hung %v", time.Since(start), err, w.Hung)
				}
				if tt.deaf && (w.importGivenUp == nil || !strings.Contains(err.Error(), "Open was asked to end, but has not returned")) {
					t.Errorf("%v; an import opens it again: %v", err, w.importGivenUp == nil)
				}
				if tt.now && !tt.deaf && !errors.Is(err, killed) {
					t.Error(err)
				}
				close(p.open)
				if tt.deaf {
					<-p.box.closed
				}
			})
		})
	}
}
