package slots

import (
	"context"
	"testing"
	"testing/synctest"
)

// As many callers as the limit have a slot, for any order of taking and freeing, also when the limit changes.
func TestSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s Slots
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		got := make(chan func())
		ask := func() {
			go func() {
				if free, ok := s.Take(ctx); ok {
					got <- free
				}
			}()
		}
		has := func(when string, want int) (frees []func()) {
			t.Helper()
			for {
				synctest.Wait()
				select {
				case free := <-got:
					frees = append(frees, free)
					continue
				default:
				}
				if len(frees) != want {
					t.Fatalf("%s, %d get a slot, want %d", when, len(frees), want)
				}
				return frees
			}
		}
		ask()
		first := has("without a limit", 1)
		s.Set(2)
		ask()
		ask()
		ask()
		second := has("where one of two is taken", 1)
		first[0]()
		first[0]() // freeing again does nothing
		has("where one was freed", 1)
		s.Set(1)
		second[0]()
		has("above a smaller number", 0)
		s.Set(3)
		has("below a larger one", 1)
		end(nil)
	})
}
