package forge

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Parallel is how many things of one kind are looked at side by side.
const Parallel = 16

// Each looks at all things, up to [Parallel] at a time, and keeps what look says is to be kept, in the order of the things.
// The first error ends it.
func Each[T, R any](ctx context.Context, all []T, look func(context.Context, T) (R, bool, error)) ([]R, error) {
	found, keep := make([]R, len(all)), make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(Parallel)
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
