package gitlabtest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// Call is one request that reached the instance.
type Call struct {
	N        int // counted from 1
	Method   string
	Path     string // path of the URL as sent
	Query    string
	Status   int    // status of the answer; 0 before the answer, or without one
	Username string // account of the token; empty before authentication
}

// Write reports whether the call could change anything.
func (c Call) Write() bool { return c.Method != http.MethodGet && c.Method != http.MethodHead }

// Git reports whether the call is from git.
func (c Call) Git() bool { return !strings.HasPrefix(c.Path, apiPath) }

// Fault is the fault of one call.
type Fault = forgetest.Fault

// Inject calls decide before each call; if it returns nil, the call passes. A nil decide ends the faults.
func (s *Server) Inject(decide func(Call) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = decide
}

// Calls returns the calls so far, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Forget clears the list of calls; the next call is number 1.
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
	if n <= len(s.calls) { // else Forget was called meanwhile
		s.calls[n-1].Status, s.calls[n-1].Username = status, username
	}
}
