package tracker

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// parallelReads is how many issues are read side by side.
const parallelReads = 8

// Read reads the issues with these keys, in their order. The Issue of a key that is not found is zero. Of several errors
// it returns the first.
func Read(ctx context.Context, t Tracker, keys []string) ([]Issue, error) {
	issues := make([]Issue, len(keys))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for n, key := range keys {
		reads.Go(func() (err error) {
			if issues[n], err = t.Get(ctx, key); err != nil && !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("read issue %s: %w", key, err)
			}
			return nil
		})
	}
	return issues, reads.Wait()
}
