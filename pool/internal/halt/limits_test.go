package halt

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// An import ends some time after the first request to end, and soon after the second.
func TestLimitsOfImports(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		soon, now time.Duration // time of each request; 0: never
		want      time.Duration // 0: no limit
		why       error
	}{
		"never":           {why: context.Canceled},
		"asked":           {soon: time.Minute, want: 90 * time.Second, why: ErrAsked},
		"asked twice":     {soon: time.Minute, now: 70 * time.Second, want: 75 * time.Second, why: errKilled},
		"at once":         {now: time.Minute, want: 65 * time.Second, why: errKilled},
		"again, too late": {soon: time.Minute, now: 2 * time.Minute, want: 90 * time.Second, why: ErrAsked},
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
					ctx, free = WithKill(ctx, after(tt.now))
				}
				defer free()
				start := time.Now()
				ctx, cancel := Within(ctx, Grace(after(tt.soon), 30*time.Second), Killed(ctx, Moment))
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
		"alone":                   {want: StageLimit},
		"killed meanwhile":        {kill: true, want: kill + KilledStageLimit},
		"claim lost":              {cause: Error(journal.StopClaimLost, ""), want: StageLimit},
		"killed before":           {cause: Error(journal.StopShutdown, ""), want: KilledStageLimit},
		"claim lost, then killed": {cause: Error(journal.StopClaimLost, ""), kill: true, want: kill + KilledStageLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				whole, killAll := context.WithCancelCause(t.Context())
				defer killAll(nil)
				known, free := WithKill(whole, whole)
				defer free()
				run, end := context.WithCancelCause(known)
				defer end(nil)
				if Shutdown(tt.cause) {
					killAll(tt.cause)
				} else if tt.cause != nil {
					end(tt.cause)
				}
				start := time.Now()
				ctx, cancel := Hurried(run)
				defer cancel()
				if tt.kill {
					<-time.NewTimer(kill).C
					killAll(Error(journal.StopShutdown, ""))
				}
				<-ctx.Done()
				if got := time.Since(start); got != tt.want {
					t.Errorf("after %s, want %s", got, tt.want)
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
		ctx, cancel := ForRelease(asked)
		defer cancel()
		<-time.NewTimer(time.Hour).C
		stop(nil)
		start := time.Now()
		if ctx.Err() != nil {
			t.Errorf("ended with its parent: %v", context.Cause(ctx))
		}
		<-ctx.Done()
		if got := time.Since(start); got != Moment {
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
			ctx, cancel := ForRelease(hard, soft)
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
			if got := time.Since(start); got != Moment {
				t.Errorf("%s: after %s: %v", name, got, context.Cause(ctx))
			}
			stop(nil)
			kill(nil)
		})
	}
}
