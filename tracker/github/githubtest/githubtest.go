// Package githubtest is a fake GitHub for tests: an HTTP server with state, and git over HTTP. It validates every request and
// every answer against GitHub's published OpenAPI description or GraphQL schema; a violation fails the test. Any answer can be
// made to fail in the ways of networks and servers.
//
// A Server is safe for concurrent use.
package githubtest

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// The contents of a new server.
const (
	Owner = "acme"
	Repo  = "widgets"
	// Token is ralph's own token, for the bot Bot.
	Token = "ghs_testtoken0123456789"
	Bot   = "ralph-app[bot]"
	ghost = "ghost" // GitHub's name for deleted accounts
)

// Server is one GitHub with one project.
type Server struct {
	*forgetest.Server
	t     testing.TB
	clock *forgetest.Clock
	desc  *description

	mu         sync.Mutex // guards everything below
	users      map[string]*User
	tokens     map[string]*Access
	repo       repoState
	name       string // current name of the project
	mergeRules MergeRules
	labels     []string
	issues     []*Issue // includes pull requests; number n is at n-1
	checks     map[string][]*Check
	rules      []string // required checks
	refs       map[string]string
	git        *forgetest.Repository
	app        *appState
	nextID     int64
	logs       map[int64]string
	// reactions are "CONTENT by login", by the GraphQL ID of the comment or review.
	reactions map[string][]string
	validated map[[sha256.Size]byte]bool // answers that were validated already
}

type repoState struct {
	private, archived, noIssues bool
}

// Access describes a token.
type Access struct {
	Login  string
	Scopes *string // nil unless it is a classic token
	Ends   time.Time
	jwt    bool
}

// Fault is the fault of one request.
type Fault = forgetest.Fault

// New starts a server that stops at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		t:         t,
		clock:     forgetest.NewClock(),
		desc:      describe(t),
		users:     map[string]*User{},
		tokens:    map[string]*Access{},
		checks:    map[string][]*Check{},
		refs:      map[string]string{},
		logs:      map[int64]string{},
		reactions: map[string][]string{},
		name:      Owner + "/" + Repo,
		validated: map[[sha256.Size]byte]bool{},
		nextID:    1000,
	}
	s.AddUser(User{Login: ghost, ID: 10137})
	s.AddUser(User{Login: "ada", Permission: "admin"})
	s.AddUser(User{Login: "mallory", Permission: "read"})
	s.AddUser(User{Login: Bot, Bot: true, Permission: "write"})
	s.tokens[Token] = &Access{Login: Bot}
	s.Server = forgetest.NewServer(t, http.HandlerFunc(s.serve), s.clock.Now)
	return s
}

// BaseURL returns the base URL of the REST API.
func (s *Server) BaseURL() string { return s.URL + "/api/v3/" }

// Clock returns the server's clock, which a client may share.
func (s *Server) Clock() *forgetest.Clock { return s.clock }

// Grant adds a token.
func (s *Server) Grant(token string, a Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = &a
}

// Revoke revokes a token.
func (s *Server) Revoke(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, token)
}

// id returns a new number. The caller must hold mu.
func (s *Server) id() int64 {
	s.nextID++
	return s.nextID
}

// now advances the clock by a second, so that each event has its own time. The caller must hold mu.
func (s *Server) now() time.Time {
	s.clock.Advance(time.Second)
	return s.clock.Now().UTC().Truncate(time.Second)
}
