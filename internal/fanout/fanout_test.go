package fanout_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/internal/fanout"
)

// Map calls look concurrently, within a limit, and keeps the order of the items.
func TestMap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all []int
		for n := range 25 {
			all = append(all, n)
		}
		var now atomic.Int64
		begun := time.Now()
		got, err := fanout.Map(t.Context(), all, func(_ context.Context, n int) (int, error) {
			if at := now.Add(1); at > fanout.AtOnce {
				t.Errorf("%d at once", at)
			}
			<-time.After(time.Minute - time.Duration(n)*time.Second) // the first ends last
			now.Add(-1)
			return n, nil
		})
		if took := time.Since(begun); err != nil || !slices.Equal(got, all) || took > 2*time.Minute {
			t.Errorf("%v after %v, %v", got, took, err)
		}
	})
}
