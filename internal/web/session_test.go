package web

import (
	"net/http/httptest"
	"testing"
	"time"
)

// A session counts until its end, and where a browser came by TLS its cookie stays there.
func TestSession(t *testing.T) {
	t.Parallel()
	s, now := newSessions("0123456789abcdef"), time.Unix(1_000_000, 0)
	r := httptest.NewRequestWithContext(t.Context(), "GET", "https://ralph.example/", nil)
	cookie := s.cookie(r, now.Add(sessionTime))
	if !cookie.Secure {
		t.Error("the cookie may go without TLS")
	}
	r.AddCookie(cookie)
	for after, want := range map[time.Duration]bool{0: true, sessionTime - time.Second: true, sessionTime: false, 10 * sessionTime: false} {
		if s.in(r, now.Add(after)) != want {
			t.Errorf("after %s: %t", after, !want)
		}
	}
	if newSessions("").in(r, now) || newSessions("another token, as long").in(r, now) {
		t.Error("the cookie counts elsewhere")
	}
}
