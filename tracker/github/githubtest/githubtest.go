// Package githubtest is a GitHub for tests: a real HTTP server with state, and git over HTTP behind it. Every request to
// it and every answer from it is validated against GitHub's published description, or its published GraphQL schema; a
// violation fails the test. Any answer can be made to fail as networks and servers do.
//
// A Server is safe for concurrent use.
package githubtest

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/clocktest"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// The parts of a fresh server.
const (
	Owner = "acme"
	Repo  = "widgets"
	// Token is ralph's own, for the bot Bot.
	Token = "ghs_testtoken0123456789"
	Bot   = "ralph-app[bot]"
	ghost = "ghost" // GitHub's name for deleted accounts
)

// Server is one GitHub with one project.
type Server struct {
	t     testing.TB
	http  *httptest.Server
	clock *clocktest.Clock
	done  chan struct{}
	desc  *description

	mu     sync.Mutex // guards everything below
	users  map[string]*User
	tokens map[string]*Access
	repo   repoState
	name   string // of the project, as it is now
	merges MergeRules
	labels []string
	issues []*Issue // pull requests too; number n is at n-1
	checks map[string][]*Check
	rules  []string // required checks
	refs   map[string]string
	git    *forgetest.Repository
	app    *appState
	nextID int64
	calls  []Call
	inject func(n int, r *http.Request) *Fault
	before func(r *http.Request)
	served int
	logs   map[int64]string
	// reactions are "CONTENT by login", by GraphQL's id of what they are on.
	reactions map[string][]string
	judged    map[[sha256.Size]byte]bool // answers that were validated
}

type repoState struct {
	private, archived, noIssues bool
}

// Access is what a token may do.
type Access struct {
	Login  string
	Scopes *string // of a classic token
	Ends   time.Time
	jwt    bool
}

// Call is one request that was served.
type Call struct {
	Method, Path, Query string
	Status              int
	Write               bool
}

// New starts a server, ended with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		t:         t,
		clock:     clocktest.New(),
		done:      make(chan struct{}),
		desc:      describe(t),
		users:     map[string]*User{},
		tokens:    map[string]*Access{},
		checks:    map[string][]*Check{},
		refs:      map[string]string{},
		logs:      map[int64]string{},
		reactions: map[string][]string{},
		name:      Owner + "/" + Repo,
		judged:    map[[sha256.Size]byte]bool{},
		nextID:    1000,
	}
	s.AddUser(User{Login: ghost, ID: 10137})
	s.AddUser(User{Login: "ada", Permission: "admin"})
	s.AddUser(User{Login: "mallory", Permission: "read"})
	s.AddUser(User{Login: Bot, Bot: true, Permission: "write"})
	s.tokens[Token] = &Access{Login: Bot}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.done)
		s.http.Close()
	})
	return s
}

// Host is the server's host and port.
func (s *Server) Host() string { return strings.TrimPrefix(s.http.URL, "http://") }

// BaseURL is the address of the REST API.
func (s *Server) BaseURL() string { return s.http.URL + "/api/v3/" }

// Clock is the server's time, which a client may share.
func (s *Server) Clock() *clocktest.Clock { return s.clock }

// Inject calls f for each request, n from 0; the fault that it returns happens to the request. A nil f ends it.
func (s *Server) Inject(f func(n int, r *http.Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject, s.served = f, 0
}

// Before calls f before each request; people may do something then.
func (s *Server) Before(f func(r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Calls returns the requests since the last Calls.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.calls
	s.calls = nil
	return out
}

// Grant makes another token.
func (s *Server) Grant(token string, a Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = &a
}

// Revoke ends a token.
func (s *Server) Revoke(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, token)
}

// id makes a new number; the caller holds mu.
func (s *Server) id() int64 {
	s.nextID++
	return s.nextID
}

// now passes a second, so that each event has its own time; the caller holds mu.
func (s *Server) now() time.Time {
	s.clock.Advance(time.Second)
	return s.clock.Now().UTC().Truncate(time.Second)
}
