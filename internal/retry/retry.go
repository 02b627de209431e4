// Package retry defines how often, and after which pauses, ralph repeats operations with transient failures: calls of a
// forge's API, and git commands that talk to a remote.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Attempts is the maximum number of attempts, including the first.
const Attempts = 4

// first is the pause before the second attempt.
const first = 500 * time.Millisecond

// Pause returns the pause after attempt n, counted from 1. It doubles with each attempt and has jitter.
func Pause(n int) time.Duration {
	pause := first << (n - 1)
	return pause + rand.N(pause) //nolint:gosec // jitter is no secret
}

// Sleep returns nil after d, or context.Cause(ctx) if ctx ends first.
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
