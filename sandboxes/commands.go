package sandboxes

import (
	"context"
	"maps"
	"sync"
)

// Commands are the running commands of one sandbox, and whether there can be more. Providers use it. The zero value is an open
// sandbox.
type Commands struct {
	closing sync.Mutex // held by the one Close that works
	ended   bool       // guarded by closing; Close has done its work

	mu      sync.Mutex
	closed  bool                                      // guarded by mu; no command starts any more
	broken  error                                     // guarded by mu; why no command can succeed any more
	running map[chan struct{}]context.CancelCauseFunc // guarded by mu
}

// Begin registers a command, whose client stop ends. The caller calls end when nothing of the command is left.
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

// Break sets the reason why no command can succeed any more. The first one counts.
func (c *Commands) Break(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = why
	}
}

// Broken is that reason; nil when commands can succeed.
func (c *Commands) Broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Close lets no more commands start, removes the sandbox, and ends the running commands. It is idempotent; after an error it
// can be called again. first reports whether this call has ended the sandbox.
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

// Stop ends the running commands and waits for them.
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
