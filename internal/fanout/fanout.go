// Package fanout looks at many things at the same time.
package fanout

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// AtOnce is how many things are looked at side by side.
const AtOnce = 16

// Keep looks at all things, up to [AtOnce], and returns what look says is to be kept, in the order of the things. The first
// error ends it.
func Keep[T, R any](ctx context.Context, all []T, look func(context.Context, T) (R, bool, error)) ([]R, error) {
	found, keep := make([]R, len(all)), make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(AtOnce)
	for n, one := range all {
		group.Go(func() (err error) {
			found[n], keep[n], err = look(ctx, one)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []R
	for n := range found {
		if keep[n] {
			out = append(out, found[n])
		}
	}
	return out, nil
}
