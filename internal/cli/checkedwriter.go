package cli

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// checkedWriter keeps the first error and lets one line through at a time. A pipe that nobody reads any more is no error:
// what is written from then on is taken and dropped.
type checkedWriter struct {
	unread chan struct{} // closed when nobody reads any more
	mu     sync.Mutex
	w      io.Writer // guarded by mu; nil when nobody reads any more
	first  error     // guarded by mu
	via    io.Writer // guarded by mu; what is written goes there instead; nil: nowhere else
}

func newCheckedWriter(w io.Writer) *checkedWriter {
	return &checkedWriter{w: w, unread: make(chan struct{})}
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w == nil {
		return len(b), nil
	}
	n, to := len(b), c.w
	if c.via != nil {
		to = c.via
	}
	_, err := to.Write(b)
	switch {
	case errors.Is(err, syscall.EPIPE):
		c.w = nil
		close(c.unread)
		return len(b), nil
	case err != nil && c.first == nil:
		c.first = err
	}
	if err != nil {
		n = 0
	}
	return n, err
}

// divert sends what is written somewhere else; nil ends that.
func (c *checkedWriter) divert(to io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.via = to
}

func (c *checkedWriter) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}
