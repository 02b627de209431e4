package sandboxes

import (
	"context"
	"maps"
	"sync"
)

// Commands tracks the running commands of one sandbox and whether more may start. Providers use it. The zero value is an
// open sandbox. It is safe for concurrent use.
type Commands struct {
	closing sync.Mutex // held by the Close call that does the work
	ended   bool       // guarded by closing; a Close has succeeded

	mu      sync.Mutex
	closed  bool                                      // guarded by mu; no command may start any more
	broken  error                                     // guarded by mu; the reason why no command can succeed any more
	running map[chan struct{}]context.CancelCauseFunc // guarded by mu
}

// Begin registers a command; stop ends the command's client. The caller calls end when no process of the command is left.
func (c *Commands) Begin(stop context.CancelCauseFunc) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, ErrClosed
	case c.broken != nil:
		return nil, c.broken
	}
	if c.running == nil {
		c.running = make(map[chan struct{}]context.CancelCauseFunc)
	}
	done := make(chan struct{})
	c.running[done] = stop
	return func() {
		c.mu.Lock()
		delete(c.running, done)
		c.mu.Unlock()
		close(done)
	}, nil
}

// Closed reports whether Close was called.
func (c *Commands) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Break sets the reason why no command can succeed any more. Later reasons are ignored.
func (c *Commands) Break(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = why
	}
}

// Broken returns the reason given to Break, or nil.
func (c *Commands) Broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Close prevents new commands, removes the sandbox, and ends the running commands. It is idempotent, and may be called
// again after an error. first reports whether this call closed the sandbox.
func (c *Commands) Close(ctx context.Context, remove func(context.Context) error) (first bool, err error) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.ended {
		return false, nil
	}
	if err := remove(ctx); err != nil {
		return false, err
	}
	if err := c.Stop(ctx); err != nil {
		return false, err
	}
	c.ended = true
	return true, nil
}

// Stop ends the running commands and waits for them, or returns the cause of ctx when ctx ends first.
func (c *Commands) Stop(ctx context.Context) error {
	c.mu.Lock()
	running := maps.Clone(c.running)
	c.mu.Unlock()
	for _, stop := range running {
		stop(ErrClosed)
	}
	for done := range running {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
