package workspace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
)

// An import ends some time after the first request to end, and soon after the second.
func TestEndingLimitsImports(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		soon, now time.Duration // time of each request; 0: never
		want      time.Duration // 0: no limit
		why       error
	}{
		"never":           {why: context.Canceled},
		"asked":           {soon: time.Minute, want: 90 * time.Second, why: errEndAsked},
		"asked twice":     {soon: time.Minute, now: 70 * time.Second, want: 75 * time.Second, why: errEndNow},
		"at once":         {now: time.Minute, want: 65 * time.Second, why: errEndNow},
		"again, too late": {soon: time.Minute, now: 2 * time.Minute, want: 90 * time.Second, why: errEndAsked},
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
				ctx, cancel := e.forImport(t.Context())
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

// Work after the end of a run has less time once everything is to end at once, even if it has begun before.
func TestHurried(t *testing.T) {
	t.Parallel()
	const kill = 30 * time.Second // after the beginning
	for name, tt := range map[string]struct {
		cause error         // cause of the run's end, before the beginning; nil: it has not ended
		kill  bool          // everything is to end
		want  time.Duration // after the beginning
	}{
		"alone":                   {want: stageLimit},
		"killed meanwhile":        {kill: true, want: kill + killedStageLimit},
		"claim lost":              {cause: halt.Error(journal.StopClaimLost, ""), want: stageLimit},
		"killed before":           {cause: halt.Error(journal.StopShutdown, ""), want: killedStageLimit},
		"claim lost, then killed": {cause: halt.Error(journal.StopClaimLost, ""), kill: true, want: kill + killedStageLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				whole, killAll := context.WithCancelCause(t.Context())
				defer killAll(nil)
				bounded, free := Bounded(whole, whole)
				defer free()
				run, end := context.WithCancelCause(bounded)
				defer end(nil)
				if halt.Shutdown(tt.cause) {
					killAll(tt.cause)
				} else if tt.cause != nil {
					end(tt.cause)
				}
				start := time.Now()
				ofRun, cancel := Ending{Now: whole.Done()}.Hurried(run)
				defer cancel()
				ofContext, cancel := Hurried(run)
				defer cancel()
				if tt.kill {
					<-time.NewTimer(kill).C
					killAll(halt.Error(journal.StopShutdown, ""))
				}
				<-ofRun.Done()
				if got := time.Since(start); got != tt.want {
					t.Errorf("of the run: after %s, want %s", got, tt.want)
				}
				want := tt.want
				if tt.cause != nil && tt.kill { // ofContext knows only of the run's end, and of the bound
					want = kill + killedTotalLimit
				}
				<-ofContext.Done()
				if got := time.Since(start); got != want {
					t.Errorf("of the context: after %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// A run's claim and files are released although its context has ended, but a remote that hangs does not delay that for long.
func TestOutlasting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, stop := context.WithCancelCause(t.Context())
		ctx, cancel := WithExtraTime(asked)
		defer cancel()
		<-time.NewTimer(time.Hour).C
		stop(nil)
		start := time.Now()
		if ctx.Err() != nil {
			t.Errorf("ended with its parent: %v", context.Cause(ctx))
		}
		<-ctx.Done()
		if got := time.Since(start); got != briefLimit {
			t.Errorf("after %s: %v", got, context.Cause(ctx))
		}
	})
}

// Releasing at the end of a call may wait for a remote until somebody stops the call.
func TestLeaving(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"asked to end": true, "ended": false} {
		synctest.Test(t, func(t *testing.T) {
			soft, stop := context.WithCancelCause(t.Context())
			hard, kill := context.WithCancelCause(t.Context())
			ctx, cancel := WithReleaseTime(soft, hard)
			defer cancel()
			<-time.NewTimer(time.Hour).C
			if ctx.Err() != nil {
				t.Fatalf("%s: over before: %v", name, context.Cause(ctx))
			}
			start := time.Now()
			if first {
				stop(nil)
			} else {
				kill(nil)
			}
			<-ctx.Done()
			if got := time.Since(start); got != briefLimit {
				t.Errorf("%s: after %s: %v", name, got, context.Cause(ctx))
			}
			stop(nil)
			kill(nil)
		})
	}
}
