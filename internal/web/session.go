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

// The bounds of sessions.
const (
	sessionTime  = 24 * time.Hour  // how long a browser stays logged in
	sessionCheck = 2 * time.Second // between looks while something is being sent
	sessionWait  = 3 * time.Second // for an answer to each
	maxSessions  = 1000            // of a process; one more ends the oldest
)

// sessionCookie is the name of the cookie of a browser that has logged in.
const sessionCookie = "ralph-session"

var errSession = errors.New("the session has ended")

// Sessions are the browsers that have logged in, by a digest of their cookie. Its methods are safe for concurrent use.
type Sessions interface {
	// Begin adds one that ends by itself after a while. Where there are too many, the oldest end.
	Begin(ctx context.Context, id []byte, life time.Duration) error
	On(ctx context.Context, id []byte) (bool, error)
	End(ctx context.Context, id []byte) error
}

// memory are the sessions of this process, the oldest first. All have the same life.
type memory struct {
	mu   sync.Mutex
	list []begun // guarded by mu
}

type begun struct {
	id    []byte
	until time.Time
}

// Begin is part of Sessions.
func (m *memory) Begin(_ context.Context, id []byte, life time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(b begun) bool { return !time.Now().Before(b.until) })
	m.list = append(m.list, begun{id, time.Now().Add(life)})
	m.list = m.list[max(0, len(m.list)-maxSessions):]
	return nil
}

// On is part of Sessions.
func (m *memory) On(_ context.Context, id []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.list, func(b begun) bool { return bytes.Equal(b.id, id) && time.Now().Before(b.until) }), nil
}

// End is part of Sessions.
func (m *memory) End(_ context.Context, id []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(b begun) bool { return bytes.Equal(b.id, id) })
	return nil
}

// login is how browsers log in. Its methods are safe for concurrent use.
type login struct {
	key      []byte // hash of the token; nil: no token is needed
	sessions Sessions
}

func newLogin(token string, s Sessions) login {
	if token == "" {
		return login{}
	}
	if s == nil {
		s = &memory{}
	}
	hash := sha256.Sum256([]byte(token))
	return login{hash[:], s}
}

// right compares a token in constant time.
func (l login) right(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], l.key) == 1
}

// id is the session of a cookie's value. With another token it is another, so that a new token ends all.
func (l login) id(value string) []byte {
	mac := hmac.New(sha256.New, l.key)
	mac.Write([]byte(value))
	return mac.Sum(nil)
}

// form is what forms of pages have to send, the same on all machines with the token; empty: there is none.
func (l login) form() string {
	if l.key == nil {
		return ""
	}
	return hex.EncodeToString(l.id("form"))
}

// begin ends the session of a request's browser and makes a new one; it returns the value of its cookie.
func (l login) begin(r *http.Request) (string, error) {
	if err := l.end(r); err != nil {
		return "", err
	}
	value := rand.Text()
	return value, l.sessions.Begin(r.Context(), l.id(value), sessionTime)
}

// on reports whether a request's browser is logged in.
func (l login) on(r *http.Request) (bool, error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || l.key == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), sessionWait)
	defer cancel()
	return l.sessions.On(ctx, l.id(cookie.Value))
}

// end ends the session of a request's browser, and soon everything that is being sent there.
func (l login) end(r *http.Request) error {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil //nolint:nilerr // there is no cookie
	}
	return l.sessions.End(r.Context(), l.id(cookie.Value))
}

// within is the request, which ends when its session does. What has begun goes on while sessions cannot be looked up.
func (l login) within(r *http.Request) (_ *http.Request, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	r = r.WithContext(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for retry.Sleep(ctx, sessionCheck) == nil {
			if on, err := l.on(r); err == nil && !on {
				cancel(errSession)
			}
		}
	})
	return r, func() { cancel(nil); watch.Wait() }
}

// sessionOf is the cookie of a session; it ends at once when value is empty. Where a browser came by TLS, it never goes without.
func sessionOf(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: byTLS(r), MaxAge: -1,
	}
	if value != "" {
		c.MaxAge = int(sessionTime.Seconds())
	}
	return c
}
