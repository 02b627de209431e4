package transport

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

func TestTokenGoesHomeOnly(t *testing.T) {
	t.Parallel()
	var otherHeader http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		otherHeader = r.Header
		writeJSON(w, 200, `"there"`)
	}))
	t.Cleanup(other.Close)
	g := newRig(t, Config{Source: fixedToken(secret)}, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/log", http.StatusFound)
	})
	if _, body, err := g.do(LastBytes(t.Context(), 100), http.MethodGet, "/log", ""); err != nil || body != `"there"` {
		t.Fatalf("answer %q, %v", body, err)
	}
	if got := g.requests[0].Header.Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("at home: %q", got)
	}
	for name, v := range otherHeader {
		if strings.Contains(strings.Join(v, ""), secret) {
			t.Errorf("elsewhere: %s carries the token", name)
		}
	}
}

func TestRedirectedWriteIsNotFollowed(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{}, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
	})
	if status, _, err := g.do(t.Context(), http.MethodPost, "/old", "{}"); err != nil || status != http.StatusTemporaryRedirect || g.requestCount() != 1 {
		t.Errorf("%d, %v after %d requests", status, err, g.requestCount())
	}
}

// A read that redirects to another issue or project is followed only with Follow.
func TestMovedReadIsFollowedOnRequest(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{}, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
			return
		}
		writeJSON(w, 200, `"there"`)
	})
	if status, _, err := g.do(t.Context(), http.MethodGet, "/old", ""); err != nil || status != http.StatusMovedPermanently || g.requestCount() != 1 {
		t.Errorf("%d, %v after %d requests", status, err, g.requestCount())
	}
	if status, body, err := g.do(Follow(t.Context()), http.MethodGet, "/old", ""); err != nil || status != 200 || body != `"there"` {
		t.Errorf("asked to follow: %d %q, %v", status, body, err)
	}
}

// A redirect out of the API fails at once, and not as a project that has moved.
func TestDivertedAnswer(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{}, func(_ int, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/moved":
			http.Redirect(w, r, "/api/projects/7", http.StatusFound)
		case "/api/itself":
			http.Redirect(w, r, "/api/itself?again=1", http.StatusFound)
		case "/apis/new", "/users/sign_in":
			writeJSON(w, 200, "<html>")
		case "/api/near":
			http.Redirect(w, r, "/apis/new", http.StatusFound)
		default:
			http.Redirect(w, r, "/users/sign_in?ticket=secret", http.StatusTemporaryRedirect)
		}
	})
	g.apiURL.Path = "/api/"
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for path, want := range map[string]string{"/api/x": "/users/sign_in; check the forge's address", "/api/near": "/apis/new; check", "/api/itself": "/api/itself; check"} {
			for name, ctx := range map[string]context.Context{"": t.Context(), "followed": Follow(t.Context())} {
				before := g.requestCount()
				_, _, err := g.do(ctx, method, path, "")
				f, ok := errors.AsType[*Failure](err)
				if !ok || f.Reason != Diverted || f.Action != Stop || f.Uncertain || !strings.Contains(f.Error(), want) || g.requestCount() != before+1 {
					t.Errorf("%s %s %s: %v after %d requests", method, path, name, err, g.requestCount()-before)
				}
			}
		}
		if status, _, err := g.do(t.Context(), method, "/api/moved", ""); err != nil || status != http.StatusFound {
			t.Errorf("%s moved: %d, %v", method, status, err)
		}
	}
}

func TestRefusedTokenIsRenewedOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{Source: &countingSource{}}, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer tok1" {
			writeJSON(w, 401, `{}`)
			return
		}
		writeJSON(w, 200, `"ok"`)
	})
	if status, _, err := g.do(t.Context(), http.MethodPost, "/x", `{"a":1}`); err != nil || status != 200 || g.requestCount() != 2 {
		t.Errorf("%d, %v after %d requests", status, err, g.requestCount())
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method string
		intent func(context.Context) context.Context
		fails  func(http.ResponseWriter)
		want   int // requests
	}{
		"read":             {http.MethodGet, nil, func(w http.ResponseWriter) { writeJSON(w, 502, "{}") }, 3},
		"read, cut":        {http.MethodGet, nil, writeTruncated, 3},
		"read, no JSON":    {http.MethodGet, nil, func(w http.ResponseWriter) { writeJSON(w, 200, "<html>") }, 3},
		"delete":           {http.MethodDelete, nil, writeTruncated, 3},
		"write":            {http.MethodPost, nil, func(w http.ResponseWriter) { writeJSON(w, 502, "{}") }, 1},
		"write, cut":       {http.MethodPost, nil, writeTruncated, 1},
		"patch":            {http.MethodPatch, nil, writeTruncated, 1},
		"repeatable write": {http.MethodPost, WithIdempotent, writeTruncated, 3},
		"reading post":     {http.MethodPost, WithReadOnly, writeTruncated, 3},
		"refusal":          {http.MethodGet, nil, func(w http.ResponseWriter) { writeJSON(w, 404, "{}") }, 1},
		"not implemented":  {http.MethodGet, nil, func(w http.ResponseWriter) { writeJSON(w, 501, "{}") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, Config{}, func(n int, w http.ResponseWriter, r *http.Request) {
				if b := make([]byte, 9); r.Method == http.MethodPost {
					if k, _ := r.Body.Read(b); string(b[:k]) != `{"a":1}` {
						t.Errorf("request %d has body %q", n, b[:k])
					}
				}
				if n < 3 {
					c.fails(w)
					return
				}
				writeJSON(w, 200, `{}`)
			})
			ctx := t.Context()
			if c.intent != nil {
				ctx = c.intent(ctx)
			}
			body := ""
			if c.method == http.MethodPost {
				body = `{"a":1}`
			}
			_, _, err := g.do(ctx, c.method, "/x", body)
			if g.requestCount() != c.want {
				t.Errorf("%d requests, want %d (%v)", g.requestCount(), c.want, err)
			}
			if lost := Uncertain(err); lost != (err != nil && c.want == 1) {
				t.Errorf("uncertain is %v for %v", lost, err)
			}
		})
	}
}

func writeTruncated(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte(`{"a":`))
	panic(http.ErrAbortHandler)
}

func TestRetryEnds(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{Attempts: 3}, func(_ int, w http.ResponseWriter, _ *http.Request) { writeJSON(w, 503, `{}`) })
	if status, _, err := g.get("/x"); err != nil || status != 503 || g.requestCount() != 3 {
		t.Errorf("%d, %v after %d requests, want the last answer after 3", status, err, g.requestCount())
	}
}

func TestWritesAreSpaced(t *testing.T) {
	t.Parallel()
	busy := make(chan struct{}, 1)
	g := newRig(t, Config{}, func(_ int, w http.ResponseWriter, _ *http.Request) {
		select {
		case busy <- struct{}{}:
		default:
			t.Error("two writes at a time")
		}
		<-busy
		writeJSON(w, 200, `{}`)
	})
	done := make(chan error)
	for range 5 {
		go func() { _, _, err := g.do(t.Context(), http.MethodPost, "/x", "{}"); done <- err }()
	}
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := g.clock.Slept(); got != 4*time.Second {
		t.Errorf("slept %v between five writes", got)
	}
	for range 3 {
		if _, _, err := g.do(WithReadOnly(t.Context()), http.MethodPost, "/x", "{}"); err != nil {
			t.Error(err)
		}
	}
	if got := g.clock.Slept(); got != 4*time.Second {
		t.Errorf("reads waited: %v", got)
	}
}

func TestAnswerTooLong(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{MaxBody: 10}, func(_ int, w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, `"0123456789"`) })
	_, _, err := g.get("/x")
	if err == nil || !strings.Contains(err.Error(), "the answer is too long: more than 10 bytes") || g.requestCount() != 1 {
		t.Errorf("%v after %d requests", err, g.requestCount())
	}
	if _, body, err := g.do(LastBytes(t.Context(), 4), http.MethodGet, "/x", ""); err != nil || body != `789"` {
		t.Errorf("the last bytes: %q, %v", body, err)
	}
}

func TestSkew(t *testing.T) {
	t.Parallel()
	ahead := forgetest.NewClock()
	_ = ahead.Sleep(t.Context(), time.Hour)
	g := newRig(t, Config{Clock: ahead}, func(_ int, w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, `{}`) })
	if _, known := g.Skew(); known {
		t.Error("known before the first answer")
	}
	if _, _, err := g.get("/x"); err != nil {
		t.Fatal(err)
	}
	if by, known := g.Skew(); !known || by != time.Hour || !g.Now().Equal(g.clock.Now()) {
		t.Errorf("ahead by %v, %v; the forge's time %v", by, known, g.Now())
	}
}

func TestCertificateAuthorities(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, `"ok"`) }))
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(ca string) error {
		s, err := New(Config{BaseURL: server.URL, CAFile: ca, Clock: forgetest.NewClock()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if err := ask(file); err != nil {
		t.Errorf("with the authority: %v", err)
	}
	err := Explain(t.Context(), nil, "", ask(""))
	var refused *tracker.RefusedError
	var f *Failure
	if !errors.As(err, &refused) || !errors.As(err, &f) || f.Reason != Untrusted || !strings.Contains(err.Error(), "is not trusted") {
		t.Errorf("without: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Config{
		`use "forge.example" as the forge's address: want https://HOST/…`:   {BaseURL: "forge.example"},
		`use "http://forge.example" as the forge's address: want https, or`: {BaseURL: "http://forge.example"},
		"it contains no PEM certificate":                                    {BaseURL: "https://forge.example", CAFile: empty},
		"read the CA file":                                                  {BaseURL: "https://forge.example", CAFile: "/nonexistent"},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
}
