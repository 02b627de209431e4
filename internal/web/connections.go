package web

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// connections bounds how many connections are open. Whoever holds many, without a token too, must not keep all others out: at the
// limit the one that is longest without a request of a known client is closed for a new one, and the new one where all serve.
type connections struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*connection // guarded by mu; the one longest without a request of a known client first
}

type connection struct {
	net.Conn
	of      *connections
	serving bool // guarded by of.mu
}

// Accept waits for the next connection.
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
	kept := &connection{Conn: conn, of: c}
	c.open = append(c.open, kept)
	return kept
}

// Close also makes room for another.
func (c *connection) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 {
		c.of.open = slices.Delete(c.of.open, i, i+1)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// serve notes that a request of a known client is being served, or that it was until now. Its answer may be still on its way then.
func (c *connection) serve(on bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if i := slices.Index(c.of.open, c); !on && i >= 0 {
		c.of.open = append(slices.Delete(c.of.open, i, i+1), c)
	}
	c.serving = on
}

type connectionKey struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// serving keeps the request's connection open while next answers.
func serving(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if conn, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		conn.serve(true)
		defer conn.serve(false)
	}
	next.ServeHTTP(w, r)
}
