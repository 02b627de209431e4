package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"sync"
	"time"
)

// The bounds of sessions.
const (
	sessionTime = 24 * time.Hour // how long a browser stays logged in
	maxSessions = 1000           // one more ends the oldest
)

// sessionCookie is the name of the cookie of a browser that has logged in.
const sessionCookie = "ralph-session"

var errSession = errors.New("the session has ended")

// sessions knows the browsers that have logged in, by a random name. They are in memory only: all end with the process. Its
// methods are safe for concurrent use.
type sessions struct {
	key []byte // hash of the token; nil: no token is needed

	mu   sync.Mutex
	on   map[[sha256.Size]byte]session // guarded by mu; by the hash of the name
	last int                           // guarded by mu; number of the youngest
}

// session is one browser's.
type session struct {
	number int
	ctx    context.Context // ends with the session
	end    context.CancelFunc
}

func newSessions(token string) *sessions {
	if token == "" {
		return &sessions{}
	}
	hash := sha256.Sum256([]byte(token))
	return &sessions{key: hash[:], on: map[[sha256.Size]byte]session{}}
}

// right compares a token in constant time.
func (s *sessions) right(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], s.key) == 1
}

// begin makes a session and returns its name.
func (s *sessions) begin() string {
	name := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest [sha256.Size]byte
	for id, other := range s.on {
		if other.ctx.Err() != nil {
			delete(s.on, id)
		} else if first, found := s.on[oldest]; !found || other.number < first.number {
			oldest = id
		}
	}
	if len(s.on) >= maxSessions {
		s.on[oldest].end()
		delete(s.on, oldest)
	}
	s.last++
	ctx, end := context.WithTimeout(context.Background(), sessionTime)
	s.on[sha256.Sum256([]byte(name))] = session{s.last, ctx, end}
	return name
}

// of returns the session of a request's browser.
func (s *sessions) of(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.on[sha256.Sum256([]byte(cookie.Value))]
	return found, ok && found.ctx.Err() == nil
}

// end ends the session of a request's browser, and with it everything that is being sent there.
func (s *sessions) end(r *http.Request) {
	if found, ok := s.of(r); ok {
		found.end()
	}
}

// within is the request, which ends when its session does.
func (s session) within(r *http.Request) (*http.Request, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(s.ctx, func() { cancel(errSession) })
	return r.WithContext(ctx), func() { stop(); cancel(nil) }
}

// sessionOf is the cookie of the session of that name; it ends at once when that is empty. Where a browser came by TLS, it never
// goes without.
func sessionOf(r *http.Request, name string) *http.Cookie {
	c := &http.Cookie{
		Name: sessionCookie, Value: name, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: byTLS(r), MaxAge: -1,
	}
	if name != "" {
		c.MaxAge = int(sessionTime.Seconds())
	}
	return c
}
