package egress_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// A service that echoes the secret in an encoding does not reveal it either.
func TestEndpointMasksEncodings(t *testing.T) {
	t.Parallel()
	for name, encode := range map[string]func(string) string{
		"base64":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 at 1":    func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("B" + s)) },
		"base64 at 2":    func(s string) string { return base64.StdEncoding.EncodeToString([]byte("Be" + s)) },
		"hex":            func(s string) string { return hex.EncodeToString([]byte(s)) },
		"an escape":      func(s string) string { return `{"error":"` + strings.Replace(s, "-", `\u002d`, 1) + `"}` },
		"percent escape": func(s string) string { return "?key=" + strings.ReplaceAll(s, "-", "%2D") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := api(t, nil, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
				key := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
				w.Header().Set("X-Echo", encode(key))
				for _, c := range encode(key) {
					fmt.Fprint(w, string(c))
					_ = http.NewResponseController(w).Flush()
				}
			})
			res := ask(t, r, nil)
			body, err := io.ReadAll(res.body)
			if err != nil || len(body) != len(encode(secret)) {
				t.Fatalf("body %q, %v", body, err)
			}
			if kept := len(body) - bytes.Count(body, []byte("*")); kept > 16 || res.header.Get("X-Echo") != "" {
				t.Errorf("body %s, headers %v", body, res.header)
			}
		})
	}
}

// Endpoints do not ask for answers that cannot be searched, and refuse them.
func TestEndpointRefusesUnreadableAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, string){
		"gzip": func(w http.ResponseWriter, key string) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, key)
			_ = z.Close()
		},
		"br after identity": func(w http.ResponseWriter, key string) {
			w.Header().Add("Content-Encoding", "identity")
			w.Header().Add("Content-Encoding", "br")
			fmt.Fprint(w, key)
		},
		"a part": func(w http.ResponseWriter, key string) {
			w.Header().Set("Content-Range", "bytes 3-9/25")
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, key[3:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := api(t, nil, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
				if q.Header.Get("Range") != "" || q.Header.Get("If-Range") != "" || q.Header.Get("Accept-Encoding") != "identity" {
					t.Errorf("the service got %v", q.Header)
				}
				answer(w, secret)
			})
			res := ask(t, r, func(q *http.Request) {
				q.Header.Set("Range", "bytes=3-")
				q.Header.Set("If-Range", `"tag"`)
				q.Header.Set("Accept-Encoding", "gzip, br")
			})
			body, err := io.ReadAll(res.body)
			if err != nil || res.status != http.StatusBadGateway || !strings.Contains(string(body), "against ralph's request") {
				t.Errorf("%d %q %v", res.status, body, err)
			}
			r.wantRefused(t, "unreadable api:0")
		})
	}
}

// Paths and headers that some services interpret as another request are refused.
func TestEndpointRefusesAmbiguousRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, header string }{
		{"GET /v1/models/..;/files", ""}, {"GET /v1/models;/../files", ""}, {"GET /v1/models/%2e%2e/files", ""},
		{"GET /v1/models/%252e%252e/files", ""}, {"GET /v1/models/%2E./files", ""}, {"GET /v1/models//files", ""},
		{"GET /v1/models/a%2f..%2ffiles", ""}, {"GET /v1/models/%5c..%5cfiles", ""}, {`GET /v1/models\..\files`, ""},
		{"GET /v1/models/..%00/files", ""}, {"GET /v1/models/%C0%AE%C0%AE/files", ""}, {"GET /v1/models/%0d%0aX:y", ""},
		{"GET /v1/models/../files", ""}, {"GET /v1/models/./x", ""}, {"GET /v1/models/..%3B/files", ""}, {"GET /v1/models?_method=DELETE", ""},
		{"DELETE /v1/models/x", ""}, {"TRACE /v1/models", ""},
		{"GET /v1/models", "X-HTTP-Method-Override: DELETE"}, {"GET /v1/models", "x_http_method: PUT"},
		{"GET /v1/models", "X-Method-Override: DELETE"}, {"GET /v1/models", "X-Original-URL: /v1/files"}, {"GET /v1/models", "X-Rewrite-Url: /v1/files"},
	} {
		t.Run(tt.line+tt.header, func(t *testing.T) {
			t.Parallel()
			routed := func(e *egress.Endpoint) { e.Routes = []egress.Route{{Method: "GET", Path: "/v1/models*"}} }
			r, _ := api(t, routed, egress.Limits{}, func(_ http.ResponseWriter, q *http.Request) {
				t.Errorf("the service got %s %s", q.Method, q.URL)
			})
			status, body := speak(t, r, tt.line+" HTTP/1.1\r\nHost: x\r\n"+tt.header+"\r\n")
			if status != http.StatusForbidden && status != http.StatusBadRequest || strings.Contains(body, "ok") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	// Requests of real agents still pass.
	r, _ := api(t, func(e *egress.Endpoint) { e.Routes = []egress.Route{{Path: "/v1/*"}} }, egress.Limits{}, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "ok")
	})
	for _, path := range []string{"/v1/models?limit=1000", "/v1/models/claude-fable-5%5B1m%5D", "/v1/models/gemini-3:streamGenerateContent?alt=sse", "/v1/models/a@b", "/v1/models/"} {
		if status, body := speak(t, r, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"); status != 200 || body != "ok" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// speak sends a request unchanged, and adds the final line end.
func speak(t *testing.T, r *rig, request string) (status int, body string) {
	t.Helper()
	c, err := r.open(t, "endpoint 0")
	if err != nil {
		t.Fatal(err)
	}
	defer func(c net.Conn) { _ = c.Close() }(c)
	if strings.HasSuffix(request, "\r\n\r\n") {
		request = strings.TrimSuffix(request, "\r\n")
	}
	if _, err := io.WriteString(c, request+"Connection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(all)
}
