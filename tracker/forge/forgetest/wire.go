package forgetest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
)

// Call is one request of a tracker. Status is that of the answer or of the fault.
type Call struct {
	Method, Path string
	Status       int
}

// Wire is an http.RoundTripper that records the requests of a tracker and injects faults on a real connection.
type Wire struct {
	base   *http.Transport
	faults string // host of the server that answers with faults, by path

	mu      sync.Mutex
	calls   []*Call                                             // guarded by mu
	inject  func(n int, c Call) *Fault                          // n counts from 0 since inject was set; guarded by mu
	count   int                                                 // guarded by mu
	pending map[string]func(http.ResponseWriter, *http.Request) // guarded by mu
}

// NewWire returns a Wire that is closed at the end of the test.
func NewWire(t *testing.T) *Wire {
	t.Helper()
	w := &Wire{base: &http.Transport{}, pending: map[string]func(http.ResponseWriter, *http.Request){}}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		apply := w.pending[r.URL.Path]
		w.mu.Unlock()
		apply(rw, r)
	}))
	w.faults = server.Listener.Addr().String()
	t.Cleanup(func() {
		w.base.CloseIdleConnections()
		server.Close()
	})
	return w
}

// Inject sets the function that chooses a fault for each further call; nil removes it. Only one goroutine may call Inject.
func (w *Wire) Inject(f func(n int, c Call) *Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inject, w.count = f, 0
}

// Calls returns the calls since the previous call of Calls.
func (w *Wire) Calls() (calls []Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		calls = append(calls, *c)
	}
	w.calls = nil
	return calls
}

// RoundTrip makes one request, or fails it with a fault.
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	c := &Call{Method: r.Method, Path: r.URL.EscapedPath()}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	var fault *Fault
	if w.inject != nil {
		fault = w.inject(w.count, *c)
		w.count++
	}
	w.mu.Unlock()
	var resp *http.Response
	var err error
	if fault == nil {
		resp, err = w.base.RoundTrip(r)
	} else {
		resp, err = w.injectFault(r, *fault)
	}
	if err == nil {
		w.mu.Lock()
		c.Status = resp.StatusCode
		w.mu.Unlock()
	}
	return resp, err
}

// injectFault makes the request if the fault has an effect, and lets the fault server answer.
func (w *Wire) injectFault(r *http.Request, f Fault) (*http.Response, error) {
	var realAnswer []byte
	if f.Effect {
		resp, err := w.base.RoundTrip(r.Clone(r.Context()))
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if realAnswer, err = io.ReadAll(resp.Body); err != nil {
			return nil, err
		}
	} else if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	path := "/" + strconv.Itoa(len(w.pending))
	w.pending[path] = func(rw http.ResponseWriter, q *http.Request) { f.Apply(rw, q, nil, realAnswer) }
	w.mu.Unlock()
	q := r.Clone(r.Context())
	q.URL, q.Host = &url.URL{Scheme: "http", Host: w.faults, Path: path}, ""
	q.Body, q.ContentLength = http.NoBody, 0
	q.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
	resp, err := w.base.RoundTrip(q)
	if err == nil {
		resp.Request = r
	}
	return resp, err
}
