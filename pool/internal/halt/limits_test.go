package halt

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

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
