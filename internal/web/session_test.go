package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// asked returns a request of the browser with that session.
func asked(t *testing.T, value string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "https://ralph.example/", nil)
	r.AddCookie(sessionOf(r, value))
	return r
}

// isOn reports whether the request's browser is logged in.
func isOn(t *testing.T, l login, r *http.Request) bool {
	t.Helper()
	on, err := l.isLoggedIn(r)
	if err != nil {
		t.Error(err)
	}
	return on
}

func begin(t *testing.T, l login) string {
	t.Helper()
	value, err := l.begin(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// A session is valid until its end, which also ends its responses. The cookie of a browser with TLS is restricted to TLS.
func TestSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLogin("0123456789abcdef", nil)
		r := asked(t, begin(t, l))
		if !sessionOf(r, "x").Secure {
			t.Error("the cookie may go without TLS")
		}
		if isOn(t, newLogin("0123456789abcdef", nil), r) {
			t.Error("the cookie counts elsewhere")
		}
		if isOn(t, newLogin("another token's", l.sessions), r) {
			t.Error("the cookie counts with another token")
		}
		if isOn(t, newLogin("", nil), r) || newLogin("", nil).form() != "" {
			t.Error("there is a session without a token")
		}
		if form := l.form(); form != newLogin("0123456789abcdef", nil).form() || form == newLogin("another token's", nil).form() {
			t.Error("forms are not those of the token")
		}
		<-time.After(sessionTime - time.Second)
		if !isOn(t, l, r) {
			t.Fatal("the session ended early")
		}
		sent, done := l.withSession(r)
		defer done()
		<-sent.Context().Done()
		if !errors.Is(context.Cause(sent.Context()), errSession) || isOn(t, l, r) || r.Context().Err() != nil {
			t.Error("the session goes on")
		}
	})
}

// The number of sessions is limited: expired ones are removed first, then the oldest.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := newLogin("0123456789abcdef", m)
		first, second := begin(t, l), begin(t, l)
		if err := l.end(asked(t, second)); err != nil {
			t.Error(err)
		}
		for range maxSessions - 1 {
			begin(t, l)
		}
		if !isOn(t, l, asked(t, first)) || len(m.list) != maxSessions {
			t.Errorf("%d sessions, or the first is not on", len(m.list))
		}
		last := begin(t, l)
		if isOn(t, l, asked(t, first)) || !isOn(t, l, asked(t, last)) || len(m.list) != maxSessions {
			t.Errorf("%d sessions, or the first is on, or the last is not", len(m.list))
		}
		<-time.After(sessionTime)
		if begin(t, l); len(m.list) != 1 {
			t.Errorf("%d sessions", len(m.list))
		}
	})
}

// away are sessions that cannot be looked up while err is set.
type away struct {
	memory
	err error
}

func (a *away) IsActive(ctx context.Context, id []byte) (bool, error) {
	on, err := a.memory.IsActive(ctx, id)
	return on, errors.Join(err, a.err)
}

func (a *away) End(ctx context.Context, id []byte) error {
	return errors.Join(a.err, a.memory.End(ctx, id))
}

// While sessions cannot be looked up, no session gives access, and current responses continue.
func TestSessionsAreAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &away{}
		l := newLogin("0123456789abcdef", s)
		g := guard{next: http.NotFoundHandler(), hosts: []string{"ralph.example"}, login: l}
		r := asked(t, begin(t, l))
		s.err = errors.New("the database is away")
		sent, done := l.withSession(r)
		defer done()
		<-time.After(10 * sessionCheck)
		if sent.Context().Err() != nil {
			t.Error("what is being sent has ended")
		}
		for header, want := range map[string]int{"": http.StatusServiceUnavailable, "Bearer 0123456789abcdef": http.StatusNotFound} {
			r, w := asked(t, "any"), httptest.NewRecorder()
			r.Header.Set("Authorization", header)
			if g.ServeHTTP(w, r); w.Code != want {
				t.Errorf("with %q: %d", header, w.Code)
			}
		}
		if err := l.end(r); err == nil {
			t.Error("the log-out succeeds")
		}
	})
}
