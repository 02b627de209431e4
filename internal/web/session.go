package web

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
)

// Limits of sessions.
const (
	sessionTime  = 24 * time.Hour  // lifetime of a login
	sessionCheck = 2 * time.Second // interval of checks during a response
	sessionWait  = 3 * time.Second // time limit of each check
	maxSessions  = 1000            // per process; an additional one ends the oldest
)

// sessionCookie is the name of the session's cookie.
const sessionCookie = "ralph-session"

var errSession = errors.New("the session has ended")

// Sessions are the logged-in browsers, identified by a digest of their cookie. Its methods are safe for concurrent use.
type Sessions interface {
	// Begin adds a session with a lifetime. If there are too many, the oldest end.
	Begin(ctx context.Context, id []byte, life time.Duration) error
	IsActive(ctx context.Context, id []byte) (bool, error)
	End(ctx context.Context, id []byte) error
}

// memory has the sessions of this process, the oldest first. All have the same lifetime.
type memory struct {
	mu   sync.Mutex
	list []loginSession // guarded by mu
}

type loginSession struct {
	id    []byte
	until time.Time
}

// Begin implements Sessions.
func (m *memory) Begin(_ context.Context, id []byte, life time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(s loginSession) bool { return !time.Now().Before(s.until) })
	m.list = append(m.list, loginSession{id, time.Now().Add(life)})
	m.list = m.list[max(0, len(m.list)-maxSessions):]
	return nil
}

// IsActive implements Sessions.
func (m *memory) IsActive(_ context.Context, id []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.list, func(s loginSession) bool { return bytes.Equal(s.id, id) && time.Now().Before(s.until) }), nil
}

// End implements Sessions.
func (m *memory) End(_ context.Context, id []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(s loginSession) bool { return bytes.Equal(s.id, id) })
	return nil
}

// login manages the sessions of browsers. Its methods are safe for concurrent use.
type login struct {
	key      []byte // hash of the token; nil: no token is needed
	sessions Sessions
	refused  *refusals
}

func newLogin(token string, s Sessions) login {
	if token == "" {
		return login{}
	}
	if s == nil {
		s = &memory{}
	}
	hash := sha256.Sum256([]byte(token))
	return login{hash[:], s, newRefusals(nil)}
}

// isToken compares a token in constant time.
func (l login) isToken(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], l.key) == 1
}

// id returns the session's id for a cookie's value. It depends on the token, so that a new token ends all sessions.
func (l login) id(value string) []byte {
	mac := hmac.New(sha256.New, l.key)
	mac.Write([]byte(value))
	return mac.Sum(nil)
}

// form returns the secret that forms must send. It is the same on all machines with the token. Empty: no token, so the pages
// choose a random one.
func (l login) form() string {
	if l.key == nil {
		return ""
	}
	return hex.EncodeToString(l.id("form"))
}

// begin ends the session of the request's browser, starts a new one, and returns the value of its cookie.
func (l login) begin(r *http.Request) (string, error) {
	if err := l.end(r); err != nil {
		return "", err
	}
	value := rand.Text()
	return value, l.sessions.Begin(r.Context(), l.id(value), sessionTime)
}

// isLoggedIn reports whether the request's browser is logged in.
func (l login) isLoggedIn(r *http.Request) (bool, error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || l.key == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), sessionWait)
	defer cancel()
	return l.sessions.IsActive(ctx, l.id(cookie.Value))
}

// end ends the session of the request's browser. Responses in progress to it end soon after; see withSession.
func (l login) end(r *http.Request) error {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil //nolint:nilerr // there is no cookie
	}
	return l.sessions.End(r.Context(), l.id(cookie.Value))
}

// withSession returns the request with a context that ends with its session. If sessions cannot be looked up, the request continues.
func (l login) withSession(r *http.Request) (_ *http.Request, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	r = r.WithContext(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for retry.Sleep(ctx, sessionCheck) == nil {
			if on, err := l.isLoggedIn(r); err == nil && !on {
				cancel(errSession)
			}
		}
	})
	return r, func() { cancel(nil); watch.Wait() }
}

// sessionOf returns the cookie of a session, or one that deletes it if value is empty. It is restricted to TLS if the
// browser uses TLS.
func sessionOf(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: usesTLS(r), MaxAge: -1,
	}
	if value != "" {
		c.MaxAge = int(sessionTime.Seconds())
	}
	return c
}
