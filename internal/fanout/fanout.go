// Package fanout looks at many things at the same time.
package fanout

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// AtOnce is how many things are looked at side by side.
const AtOnce = 16

// Map looks at all things, up to [AtOnce], and returns what look makes of them, in the order of the things. The first error ends
// it.
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
