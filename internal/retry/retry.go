// Package retry is how often, and after which pauses, ralph repeats what failed and may pass by itself: calls of a forge's
// API, and git commands that talk to a remote.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Attempts is how often a thing is tried at most, the first time included.
const Attempts = 4

// first is the pause before the second attempt.
const first = 500 * time.Millisecond

// Pause is the time between attempt n, counted from 1, and the next. Each is twice as long as the one before, with jitter.
func Pause(n int) time.Duration {
	pause := first << (n - 1)
	return pause + rand.N(pause) //nolint:gosec // jitter is no secret
}

// Sleep returns after d, or with context.Cause(ctx) when ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
