package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// asked is a request of the browser with that session.
func asked(t *testing.T, name string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "https://ralph.example/", nil)
	r.AddCookie(sessionOf(r, name))
	return r
}

// A session counts until its end, which also ends what is being sent. Where a browser came by TLS its cookie stays there.
func TestSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSessions("0123456789abcdef")
		r := asked(t, s.begin())
		if !sessionOf(r, "x").Secure {
			t.Error("the cookie may go without TLS")
		}
		if _, elsewhere := newSessions("0123456789abcdef").of(r); elsewhere {
			t.Error("the cookie counts elsewhere")
		}
		if _, open := newSessions("").of(r); open {
			t.Error("there is a session without a token")
		}
		<-time.After(sessionTime - time.Second)
		found, on := s.of(r)
		if !on {
			t.Fatal("the session ended early")
		}
		sent, done := found.within(r)
		defer done()
		<-sent.Context().Done()
		if _, on := s.of(r); on || r.Context().Err() != nil {
			t.Error("the session goes on")
		}
	})
}

// Sessions are bounded: those that have ended go, then the oldest.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSessions("0123456789abcdef")
		first, second := s.begin(), s.begin()
		s.end(asked(t, second))
		for range maxSessions - 1 {
			s.begin()
		}
		if _, on := s.of(asked(t, first)); !on || len(s.on) != maxSessions {
			t.Errorf("%d sessions, the first on: %t", len(s.on), on)
		}
		last := s.begin()
		if _, on := s.of(asked(t, first)); on || len(s.on) != maxSessions {
			t.Errorf("%d sessions, the first on: %t", len(s.on), on)
		}
		if _, on := s.of(asked(t, last)); !on {
			t.Error("the last one is not on")
		}
		<-time.After(sessionTime)
		synctest.Wait()
		if s.begin(); len(s.on) != 1 {
			t.Errorf("%d sessions", len(s.on))
		}
	})
}
