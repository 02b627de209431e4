package tracker

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/internal/fanout"
)

// Read reads the issues with these keys, in their order. The Issue of a key that is not found is zero. Of several errors
// it returns the first.
func Read(ctx context.Context, t Tracker, keys []string) ([]Issue, error) {
	return fanout.Map(ctx, keys, func(ctx context.Context, key string) (Issue, error) {
		issue, err := t.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return issue, fmt.Errorf("read issue %s: %w", key, err)
		}
		return issue, nil
	})
}
