package wire

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Accept calls serve with each connection until the listener is closed.
func Accept(ctx context.Context, l net.Listener, log *slog.Logger, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			serve(c)
		case errors.Is(err, net.ErrClosed):
			return
		default: // probably out of file descriptors: a later call may succeed
			log.Warn("egress accept", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// CloseWith closes a connection when ctx ends or the returned function is called.
func CloseWith(ctx context.Context, c net.Conn) (closeNow func()) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return func() {
		stop()
		_ = c.Close()
	}
}

// CloseWrite closes the write direction of a connection, or the whole connection if it cannot be half-closed.
func CloseWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// Splice copies in both directions until both are done, then closes both connections.
func Splice(a, b net.Conn) {
	var both sync.WaitGroup
	copyTo := func(to, from net.Conn) {
		// Hidden are the methods that CopyBuffer would use instead of the buffer.
		if _, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 64<<10)); err != nil {
			_ = a.Close()
			_ = b.Close()
			return
		}
		_ = CloseWrite(to)
	}
	both.Go(func() { copyTo(a, b) })
	copyTo(b, a)
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}
