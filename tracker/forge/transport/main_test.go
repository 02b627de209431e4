package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a stack with a server. The test's handler gets the number of the request, from 1.
type rig struct {
	*Stack
	t        *testing.T
	clock    *forgetest.Clock
	server   *httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

func newRig(t *testing.T, c Config, answer func(n int, w http.ResponseWriter, r *http.Request)) *rig {
	t.Helper()
	g := &rig{t: t, clock: forgetest.NewClock()}
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		g.mu.Lock()
		g.requests = append(g.requests, r)
		n := len(g.requests)
		g.mu.Unlock()
		w.Header().Set("Date", g.clock.Now().Format(http.TimeFormat))
		answer(n, w, r)
	}))
	t.Cleanup(g.server.Close)
	g.reopen(c)
	return g
}

// reopen makes another stack for the same server, like a new process.
func (g *rig) reopen(c Config) {
	g.t.Helper()
	c.BaseURL, c.Base = g.server.URL, &http.Transport{}
	if c.Clock == nil {
		c.Clock = g.clock
	}
	s, err := New(c)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			g.t.Error(err)
		}
	})
	g.Stack = s
}

func (g *rig) requestCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.requests)
}

// do makes one request and returns status, body and error.
func (g *rig) do(ctx context.Context, method, path, body string) (int, string, error) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, g.server.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	resp, err := g.Client().Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(b), nil
}

func (g *rig) get(path string) (int, string, error) {
	g.t.Helper()
	return g.do(g.t.Context(), http.MethodGet, path, "")
}

// writeJSON answers with JSON.
func writeJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

const secret = "tok_supersecret"

// fixedToken is a source with one token.
type fixedToken string

func (f fixedToken) Token(context.Context) (tracker.Token, error) {
	return tracker.Token{Secret: string(f)}, nil
}

// countingSource returns tok1, and a new token after each renewal.
type countingSource struct {
	mu sync.Mutex
	n  int
}

func (c *countingSource) Token(context.Context) (tracker.Token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tracker.Token{Secret: fmt.Sprint("tok", c.n+1)}, nil
}

func (c *countingSource) Renew(tracker.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}
