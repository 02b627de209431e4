package gitlabtest

import (
	"net/http"
	"strings"
)

// Call is one request that reached the instance.
type Call struct {
	N        int // counted from 1
	Method   string
	Path     string // as sent, below the host
	Query    string
	Status   int    // of the answer; 0 before the answer, or without one
	Username string // of the token's account; empty before authentication
}

// Write reports whether the call could change anything.
func (c Call) Write() bool { return c.Method != http.MethodGet && c.Method != http.MethodHead }

// Git reports a call of the git program.
func (c Call) Git() bool { return !strings.HasPrefix(c.Path, apiPath) }

// Fault makes a call fail. The zero Fault cuts the connection before any effect.
type Fault struct {
	Status int // answer with it, without any effect
	Body   string
	Header map[string]string

	After    bool // take effect, then cut the connection
	Truncate bool // take effect, announce the full answer and send half of it
	Garbage  bool // take effect, and answer with text that is not JSON
	Mistyped bool // take effect, and answer with JSON of another shape
	Hang     bool // neither take effect nor answer until the caller gives up
}

// Inject asks decide before each call; nil lets the call pass. A nil decide ends it.
func (s *Server) Inject(decide func(Call) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = decide
}

// Calls returns the calls so far, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Forget empties the list of calls; the next is number 1.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// begin records a call and chooses its fault.
func (s *Server) begin(r *http.Request) (int, *Fault) {
	s.mu.Lock()
	c := Call{N: len(s.calls) + 1, Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery}
	s.calls = append(s.calls, c)
	decide := s.fault
	s.mu.Unlock()
	if decide == nil {
		return c.N, nil
	}
	return c.N, decide(c)
}

// end records the result of the n-th call.
func (s *Server) end(n, status int, username string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= len(s.calls) { // else forgotten meanwhile
		s.calls[n-1].Status, s.calls[n-1].Username = status, username
	}
}

// spoil answers as the fault says; false when the call passes.
func spoil(w http.ResponseWriter, f *Fault, a answer) bool {
	switch {
	case f == nil:
		return false
	case f.Truncate:
		a.write(&halved{w: w})
		cut()
	case f.Garbage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id": 1, "title": "cut of`))
	case f.Mistyped:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`[{"iid": "one", "id": {"x": 1}, "title": 7, "labels": [{"name": 3}]}, null, {}]`))
	default:
		cut()
	}
	return true
}

// refuse applies a fault before any effect; false when the call continues.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, f *Fault) bool {
	switch {
	case f == nil || f.After || f.Truncate || f.Garbage || f.Mistyped:
		return false
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		cut()
	case f.Status != 0:
		for k, v := range f.Header {
			w.Header().Set(k, v)
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
	default:
		cut()
	}
	return true
}

// cut ends the connection without an answer, or in the middle of one.
func cut() { panic(http.ErrAbortHandler) }

// halved announces a whole body and sends half of it.
type halved struct{ w http.ResponseWriter }

func (h *halved) Header() http.Header         { return h.w.Header() }
func (h *halved) WriteHeader(status int)      { h.w.WriteHeader(status) }
func (h *halved) Write(b []byte) (int, error) { return h.w.Write(b[:len(b)/2]) }
