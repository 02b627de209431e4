package workspace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// An import ends some time after ralph was asked to, and soon after it was asked again.
func TestEndingLimitsImports(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		soon, now time.Duration // after so long; 0: never
		want      time.Duration // 0: no limit
		why       error
	}{
		"never":           {why: context.Canceled},
		"asked":           {soon: time.Minute, want: 90 * time.Second, why: errSoon},
		"asked twice":     {soon: time.Minute, now: 70 * time.Second, want: 75 * time.Second, why: errNow},
		"at once":         {now: time.Minute, want: 65 * time.Second, why: errNow},
		"again, too late": {soon: time.Minute, now: 2 * time.Minute, want: 90 * time.Second, why: errSoon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := func(after time.Duration) <-chan struct{} {
					if after == 0 {
						return nil
					}
					ctx, cancel := context.WithTimeout(t.Context(), after)
					t.Cleanup(cancel)
					return ctx.Done()
				}
				e := Ending{Soon: asked(tt.soon), Grace: 30 * time.Second, Now: asked(tt.now)}
				start := time.Now()
				ctx, cancel := e.limit(t.Context())
				if tt.want == 0 {
					<-time.NewTimer(time.Hour).C
					cancel()
				}
				defer cancel()
				<-ctx.Done()
				if got := time.Since(start); tt.want != 0 && got != tt.want || context.Cause(ctx) != tt.why {
					t.Errorf("after %s: %v", got, context.Cause(ctx))
				}
			})
		})
	}
}
