package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/internal/web"
)

// lockedBuffer is a log that several requests write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Wrong tokens are logged, not more than once a minute for each address, and without the token.
func TestWrongTokensAreLogged(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	s := start(t, func(c *web.Config) { c.Token, c.Log = token, slog.New(slog.NewTextHandler(log, nil)) })
	if res := s.do("GET", "/v1/projects"); res.StatusCode != http.StatusUnauthorized || log.String() != "" {
		t.Errorf("without a token: %s\n%s", res.Status, log)
	}
	for range 3 {
		if res := s.login(url.Values{"token": {"hunter22"}}); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("login: %s", res.Status)
		}
		if res := s.do("GET", "/v1/projects", "Authorization: Bearer hunter22"); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("request: %s", res.Status)
		}
	}
	if got := log.String(); strings.Count(got, "wrong token") != 1 || !strings.Contains(got, "address=127.0.0.1") || strings.Contains(got, "hunter22") {
		t.Error(got)
	}
}
