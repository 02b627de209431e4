// Package gitlabtest is a fake GitLab for tests: an HTTP server with state that implements the part of GitLab's REST API
// which tracker/gitlab uses, and git over smart HTTP from a bare repository with the same tokens.
//
// It enforces GitLab's documentation: it refuses an unknown parameter, a missing scope or a role that is too low like GitLab,
// and records text that GitLab would execute as a quick action. Answers have pagination, entity tags and rate limits. Any call
// can be made to fail in many ways, before or after its effect.
//
// A Server is safe for concurrent use.
package gitlabtest

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// Fault is the fault of one call.
type Fault = forgetest.Fault

// Server is one GitLab instance. Make one with New.
type Server struct {
	*forgetest.Server
	t testing.TB

	mu       sync.Mutex // guards everything below
	users    map[int]*User
	tokens   map[string]*token
	projects map[int]*Project
	clock    time.Time
	nextID   int
	limit    int // requests left; negative: no limit
	reset    time.Duration
	skew     time.Duration
	noKeyset bool
}

// New starts an instance that stops at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		t: t, users: map[int]*User{}, tokens: map[string]*token{}, projects: map[int]*Project{},
		nextID: 1000, limit: -1,
	}
	s.Server = forgetest.NewServer(t, http.HandlerFunc(s.serve), s.date)
	return s
}

// date returns the instance's time.
func (s *Server) date() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.skew)
}

// LimitRequests allows n more requests; later ones are refused until the time reset has passed. A negative n removes the limit.
func (s *Server) LimitRequests(n int, reset time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.reset = n, reset
}

// SkewClock sets how far the instance's clock is ahead.
func (s *Server) SkewClock(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = d
}

// WithoutKeyset makes the instance behave like an older version, which supports only numbered pages.
func (s *Server) WithoutKeyset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noKeyset = true
}

// requireTitle fails the test for an empty title, which GitLab refuses.
func (s *Server) requireTitle(title string) {
	s.t.Helper()
	if strings.TrimSpace(title) == "" {
		s.t.Error("gitlabtest: an issue or merge request has no title")
	}
}

// now returns a time later than all previous ones, in milliseconds like the API. The caller must hold mu.
func (s *Server) now() time.Time {
	at := time.Now().Add(s.skew).UTC().Truncate(time.Millisecond)
	if !at.After(s.clock) {
		at = s.clock.Add(time.Millisecond)
	}
	s.clock = at
	return at
}

func (s *Server) id() int {
	s.nextID++
	return s.nextID
}
