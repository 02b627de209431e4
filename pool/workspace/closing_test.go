package workspace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/sandboxes"
)

// unclosing is a sandbox that does not close before its context ends.
type unclosing struct{ sandboxes.Sandbox }

func (unclosing) Close(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// Once its run is asked to end, a sandbox that does not close has only the grace period.
func TestCloseThatHangs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ grace, want time.Duration }{
		"default": {30 * time.Second, 30 * time.Second},
		"none":    {0, halt.Moment},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked, ask := context.WithCancelCause(t.Context())
				w := &Workspace{c: &Config{StopGrace: tt.grace}, id: "run", Asked: asked, Sandbox: unclosing{}, Meter: gateway.NewMeter(gateway.Network{}, "run")}
				start := time.Now()
				time.AfterFunc(time.Second, func() { ask(nil) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				told := w.CloseSandbox(ctx)
				if got := time.Since(start); got != time.Second+tt.want || len(told) != 1 || !w.Unclosed || w.Sandbox != nil {
					t.Errorf("after %s: %v", got, told)
				}
			})
		})
	}
}
