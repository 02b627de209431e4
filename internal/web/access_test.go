package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/internal/web"
)

// Requests that a page of another site triggers are rejected, and so are names that only DNS tricks lead here.
func TestForgedRequests(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *web.Config) { c.Hosts = []string{"ralph.example"} }, servicetest.New(t, "shop", 0))
	own := "Origin: " + s.url
	for _, c := range []struct {
		method  string
		headers []string
		want    int
	}{
		{"GET", nil, 200},
		{"GET", []string{"Host: localhost"}, 200},
		{"GET", []string{"Host: [::1]:80"}, 200},
		{"GET", []string{"Host: 10.0.0.1"}, 421},
		{"GET", []string{"Host: RALPH.example:443"}, 200},
		{"GET", []string{"Host: evil.example"}, 421},
		{"GET", []string{"Host: 127.0.0.1.evil.example"}, 421},
		{"GET", []string{"Host: localhost.evil.example:7420"}, 421},
		{"GET", []string{own}, 200},
		{"GET", []string{"Origin: http://evil.example"}, 403},
		{"GET", []string{"Origin: null"}, 403},
		{"GET", []string{"Origin: "}, 403},
		{"GET", []string{"Host: localhost:1", "Origin: http://localhost:2"}, 403},
		{"GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403},
		{"GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 200},
		{"POST", []string{own, "Sec-Fetch-Site: same-origin"}, 204},
		{"POST", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"POST", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 403},
		{"POST", []string{"Origin: http://evil.example", "Sec-Fetch-Site: same-origin"}, 403},
	} {
		path := "/v1/projects"
		if c.method == "POST" {
			path = "/v1/projects/shop/resume"
			servicetest.Eventually(t, func() bool { return s.do("GET", "/readyz").StatusCode == http.StatusOK })
		}
		res := s.do(c.method, path, c.headers...)
		if res.StatusCode != c.want {
			t.Errorf("%s %q: %s, want %d", c.method, c.headers, res.Status, c.want)
		}
		if policy := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") {
			t.Errorf("policy %q", policy)
		}
	}
	if res := s.do("GET", "/v1/projects", "X-Long: "+strings.Repeat("x", 64<<10)); res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %s", res.Status)
	}
	if res := s.do("DELETE", "/v1/projects"); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("another method: %s", res.Status)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	s := start(t, func(c *web.Config) { c.Token = token }, servicetest.New(t, "shop", 0))
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x", nil)
	r.SetBasicAuth("anybody", token)
	for _, path := range []string{"/v1/projects", "/metrics", "/v1/openapi.json", "/", "/nowhere"} {
		for header, want := range map[string]bool{
			"X: y": false, "Authorization: Bearer " + token: true, "Authorization: Bearer " + token + "x": false, "Authorization: Bearer ": false,
			"Authorization: " + token: false, "Authorization: " + r.Header.Get("Authorization"): true, "Authorization: Basic !": false,
		} {
			res := s.do("GET", path, header)
			if got := res.StatusCode != http.StatusUnauthorized; got != want {
				t.Errorf("%s with %q: %s", path, header, res.Status)
			}
		}
	}
	if res := s.do("GET", "/healthz"); res.StatusCode != http.StatusOK {
		t.Errorf("health: %s", res.Status)
	}
}

// The pages of the queue are behind the same checks as all others.
func TestQueue(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	asked := make(chan string, 100)
	s := start(t, func(c *web.Config) {
		c.Token, c.Queue = token, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Method + " " + r.URL.Path })
	}, servicetest.New(t, "shop", 0))
	auth := "Authorization: Bearer " + token
	for _, c := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/queue/", []string{auth}, 200},
		{"GET", "/queue/api/jobs", []string{auth}, 200},
		{"POST", "/queue/api/jobs/cancel", []string{auth, "Origin: " + s.url}, 200},
		{"GET", "/queue/", nil, 401},
		{"GET", "/queue/api/jobs", []string{"Authorization: Bearer x"}, 401},
		{"GET", "/queue/", []string{auth, "Host: evil.example"}, 421},
		{"POST", "/queue/api/jobs/cancel", []string{auth, "Origin: http://evil.example"}, 403},
		{"POST", "/queue/api/jobs/cancel", []string{auth, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 403},
	} {
		if res := s.do(c.method, c.path, c.headers...); res.StatusCode != c.want {
			t.Errorf("%s %s %q: %s, want %d", c.method, c.path, c.headers, res.Status, c.want)
		}
	}
	if len(asked) != 3 {
		t.Errorf("%d requests got through, want 3", len(asked))
	}
}
