package trackertest

import (
	"context"
	"net/http"
	"sync"
)

// Gate is a transport that holds requests until a number of them are on their way at once. It is safe for concurrent use.
type Gate struct {
	Next  http.RoundTripper
	Want  int                        // how many; then all of them pass, and all later ones
	Holds func(r *http.Request) bool // which requests are held

	mu       sync.Mutex
	flying   int // guarded by mu
	peak     int // guarded by mu
	released chan struct{}
	once     sync.Once
}

// RoundTrip makes Gate an http.RoundTripper.
func (g *Gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if !g.Holds(r) {
		return g.Next.RoundTrip(r)
	}
	g.once.Do(func() { g.released = make(chan struct{}) })
	g.mu.Lock()
	g.flying++
	g.peak = max(g.peak, g.flying)
	if g.flying == g.Want {
		close(g.released)
		g.Want = -1
	}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.flying--
	}()
	select {
	case <-g.released:
		return g.Next.RoundTrip(r)
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

// CloseIdleConnections passes it on.
func (g *Gate) CloseIdleConnections() {
	if c, ok := g.Next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Peak is the most held requests that were on their way at once.
func (g *Gate) Peak() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.peak
}
