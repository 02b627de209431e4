package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Programs that scrape metrics use the address at which the machine is reached. No page can make a browser send that with
// another name.
func TestCalledByAddress(t *testing.T) {
	t.Parallel()
	to := &net.TCPAddr{IP: net.ParseIP("10.1.2.3"), Port: 7420}
	ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, to)
	g := guard{next: http.NotFoundHandler(), hosts: []string{"localhost"}}
	for host, want := range map[string]int{
		"10.1.2.3:7420": 404, "10.1.2.3": 404, "localhost:1": 404, "10.1.2.4:7420": 421, "evil.example:7420": 421, "10.1.2.3.evil.example": 421, "": 421,
	} {
		r, w := httptest.NewRequestWithContext(ctx, "GET", "/", nil), httptest.NewRecorder()
		r.Host = host
		if g.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
}
