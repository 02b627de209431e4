package workspace

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Each call reports its own first long wait, even beside another call; a short wait is not reported.
func TestSlowWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		call := func(name string) context.Context {
			return WithSlowWait(t.Context(), 10*time.Second, func(what string) { told = append(told, name+" "+what) })
		}
		wait := func(ctx context.Context, what string, long time.Duration) {
			defer BeginWait(ctx, what)()
			<-time.NewTimer(long).C
			synctest.Wait()
		}
		first := call("first")
		wait(first, "short", 9*time.Second)
		wait(first, "long", 11*time.Second)
		second := call("second")
		wait(first, "long again", time.Minute)
		wait(second, "long", 11*time.Second)
		wait(t.Context(), "of no call", time.Minute)
		if want := []string{"first long", "second long"}; !slices.Equal(told, want) {
			t.Errorf("%q, want %q", told, want)
		}
	})
}
