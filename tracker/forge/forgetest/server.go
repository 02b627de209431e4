package forgetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Call is one request to a forge.
type Call struct {
	N            int // counted from 0 since the last Inject
	Method, Path string
	Status       int // status of the answer or of the fault; 0 without one
}

// Git reports whether git made the call.
func (c Call) Git() bool { return strings.Contains(c.Path, ".git/") }

// Write reports whether the call may change something. GraphQL, and git for its reads, send a POST for anything.
func (c Call) Write() bool {
	return c.Method != http.MethodGet && !strings.HasSuffix(c.Path, "/graphql") && !strings.HasSuffix(c.Path, "/git-upload-pack")
}

// Server is the HTTP server of a fake forge. It records the calls and injects faults. It is safe for concurrent use.
type Server struct {
	URL     string
	handler http.Handler
	now     func() time.Time
	done    chan struct{} // closed at the end of the test to release hanging calls

	choosing sync.Mutex // held while a fault is chosen
	mu       sync.Mutex
	calls    []*Call             // guarded by mu
	count    int                 // guarded by mu
	inject   func(c Call) *Fault // guarded by mu
}

// NewServer starts a server that stops at the end of the test. now is the forge's clock; nil is the machine's.
func NewServer(t testing.TB, h http.Handler, now func() time.Time) *Server {
	t.Helper()
	s := &Server{handler: h, now: now, done: make(chan struct{})}
	server := httptest.NewServer(s)
	s.URL = server.URL
	t.Cleanup(func() {
		close(s.done)
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// Host returns the server's host and port.
func (s *Server) Host() string { return strings.TrimPrefix(s.URL, "http://") }

// Transport returns a transport that connects to this server, whatever the address of a request.
func (s *Server) Transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Host())
	}}
}

// Inject sets the function that chooses a fault for each further call; nil removes it. It is called for one call at a time, and
// has returned when Inject returns.
func (s *Server) Inject(f func(c Call) *Fault) {
	s.choosing.Lock()
	defer s.choosing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject, s.count = f, 0
}

// Calls returns the calls since the previous call of Calls.
func (s *Server) Calls() (calls []Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		calls = append(calls, *c)
	}
	s.calls = nil
	return calls
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.now != nil {
		w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	}
	c, fault := s.begin(r)
	out := &recorder{w, s, c}
	if fault == nil {
		s.handler.ServeHTTP(out, r)
		return
	}
	var realAnswer []byte
	if fault.Effect {
		answer := httptest.NewRecorder()
		s.handler.ServeHTTP(answer, r)
		realAnswer = answer.Body.Bytes()
	}
	fault.Apply(out, r, s.done, realAnswer)
}

// begin records a call and chooses its fault.
func (s *Server) begin(r *http.Request) (*Call, *Fault) {
	s.choosing.Lock()
	defer s.choosing.Unlock()
	s.mu.Lock()
	c := Call{N: s.count, Method: r.Method, Path: r.URL.EscapedPath()}
	s.count++
	recorded, inject := c, s.inject
	s.calls = append(s.calls, &recorded)
	s.mu.Unlock()
	if inject == nil {
		return &recorded, nil
	}
	return &recorded, inject(c)
}

// recorder records the status of an answer before the client can see it.
type recorder struct {
	http.ResponseWriter
	s *Server
	c *Call
}

func (r *recorder) WriteHeader(status int) {
	r.s.mu.Lock()
	r.c.Status = status
	r.s.mu.Unlock()
	r.ResponseWriter.WriteHeader(status)
}

// Write sends an answer. If the client has it already, by its entity tag, it only sends that it is not modified.
func Write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	if r.Method == http.MethodGet && status == http.StatusOK {
		tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(body))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
