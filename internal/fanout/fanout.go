// Package fanout processes many items concurrently.
package fanout

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// AtOnce is the maximum number of concurrent calls.
const AtOnce = 16

// Map calls look for each item, up to [AtOnce] at a time, and returns the results in the order of the items. The first error
// cancels the other calls and is returned.
func Map[T, R any](ctx context.Context, all []T, look func(context.Context, T) (R, error)) ([]R, error) {
	found := make([]R, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(AtOnce)
	for n, one := range all {
		group.Go(func() (err error) {
			found[n], err = look(ctx, one)
			return err
		})
	}
	return found, group.Wait()
}
