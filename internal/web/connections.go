package web

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// connections limits the number of open connections. A client without the token must not keep others out by holding many. At
// the limit, a new connection replaces the one that has gone longest without a request of an authorized client. If all are
// serving such requests, the new one is closed.
type connections struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*connection // guarded by mu; in the order of their last request of an authorized client, the oldest first
}

type connection struct {
	net.Conn
	owner   *connections
	serving bool // guarded by owner.mu
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if kept := c.add(conn); kept != nil {
			return kept, nil
		}
		_ = conn.Close()
	}
}

func (c *connections) add(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most {
		i := slices.IndexFunc(c.open, func(o *connection) bool { return !o.serving })
		if i < 0 {
			return nil
		}
		_ = c.open[i].Conn.Close()
		c.open = slices.Delete(c.open, i, i+1)
	}
	kept := &connection{Conn: conn, owner: c}
	c.open = append(c.open, kept)
	return kept
}

// Close also frees the connection's slot.
func (c *connection) Close() error {
	c.owner.mu.Lock()
	if i := slices.Index(c.owner.open, c); i >= 0 {
		c.owner.open = slices.Delete(c.owner.open, i, i+1)
	}
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// serve records the start or end of an authorized request. At its end the response may still be on its way.
func (c *connection) serve(on bool) {
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	if i := slices.Index(c.owner.open, c); !on && i >= 0 {
		c.owner.open = append(slices.Delete(c.owner.open, i, i+1), c)
	}
	c.serving = on
}

type connectionKey struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// protectConnection protects the request's connection from being replaced while next handles the request.
func protectConnection(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if conn, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		conn.serve(true)
		defer conn.serve(false)
	}
	next.ServeHTTP(w, r)
}
