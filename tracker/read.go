package tracker

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/internal/fanout"
)

// Read reads the issues with these keys concurrently and returns them in the order of keys. A missing issue is the zero Issue. If
// several reads fail, it returns the first error.
func Read(ctx context.Context, t Tracker, keys []string) ([]Issue, error) {
	return fanout.Map(ctx, keys, func(ctx context.Context, key string) (Issue, error) {
		issue, err := t.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return issue, fmt.Errorf("read issue %s: %w", key, err)
		}
		return issue, nil
	})
}
