package forgetest

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock whose time passes only through Sleep and Advance.
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	slept time.Duration
}

// NewClock returns a clock that starts at the beginning of 2026.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now returns the current time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep advances the clock by d and returns at once.
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

// Advance advances the clock by d. It does not count as sleep.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Slept returns the sum of all sleeps.
func (c *Clock) Slept() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slept
}
