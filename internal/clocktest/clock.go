// Package clocktest has a clock for tests that wait for nothing.
package clocktest

import (
	"context"
	"sync"
	"time"
)

// Clock is a time that passes only when somebody sleeps or advances it.
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	slept time.Duration
}

// New starts at the beginning of 2026.
func New() *Clock { return &Clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep passes d at once.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now = c.now.Add(d)
		c.slept += d
	}
	return nil
}

// Advance passes d without anybody sleeping.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Slept is the sum of all sleeps.
func (c *Clock) Slept() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slept
}
