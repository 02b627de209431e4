package workspace

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
)

// An import ends some time after the first request to end, and soon after the second.
func TestTimeOfImports(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		soon, now time.Duration // time of each request; 0: never
		want      time.Duration // 0: no limit
		why       string        // part of the cause
	}{
		"never":           {why: "canceled"},
		"asked":           {soon: time.Minute, want: 90 * time.Second, why: "asked to end"},
		"asked twice":     {soon: time.Minute, now: 70 * time.Second, want: 75 * time.Second, why: "at once"},
		"at once":         {now: time.Minute, want: 65 * time.Second, why: "at once"},
		"again, too late": {soon: time.Minute, now: 2 * time.Minute, want: 90 * time.Second, why: "asked to end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				after := func(d time.Duration) context.Context {
					if d == 0 {
						return nil
					}
					ctx, cancel := context.WithTimeout(t.Context(), d)
					t.Cleanup(cancel)
					return ctx
				}
				ctx, free := t.Context(), func() {}
				if tt.now > 0 {
					ctx, free = halt.WithKill(ctx, after(tt.now))
				}
				defer free()
				start := time.Now()
				w := &Workspace{c: &Config{StopGrace: 30 * time.Second}, StopContext: after(tt.soon)}
				ctx, cancel := w.forImport(ctx)
				if tt.want == 0 {
					<-time.NewTimer(time.Hour).C
					cancel()
				}
				defer cancel()
				<-ctx.Done()
				if got := time.Since(start); tt.want != 0 && got != tt.want || !strings.Contains(context.Cause(ctx).Error(), tt.why) {
					t.Errorf("after %s: %v", got, context.Cause(ctx))
				}
			})
		})
	}
}
