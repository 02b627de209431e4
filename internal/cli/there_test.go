package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// Both commands report a service's request for a token in the same way.
func TestServiceWantsToken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-token-of-16-characters" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"detail":"no\u001b[31m token","code":200}`))
			return
		}
		_, _ = w.Write([]byte(`{"projects":[{"name":"repo","state":"waiting","problem":""}]}`))
	}))
	defer server.Close()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	address := server.Listener.Addr().String()
	if got := m.run(t, nil, "projects", "add", "--listen="+address); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"projects", "list", "--listen=" + address}, {"projects", "pause", "repo", "--listen=" + address}, {"top", address}} {
		got := m.run(t, nil, args...)
		if got.status != exit.Usage || !strings.Contains(got.stderr, "the service answers 401 Unauthorized: no") || !strings.Contains(got.stderr, "--listen-token-file") || strings.Contains(got.stderr, "\x1b") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	token := func(h *compose.Host) { h.Env = append(h.Env, "RALPH_LISTEN_TOKEN=a-token-of-16-characters") }
	if got := m.run(t, token, "projects", "list", "--listen="+address); got.status != 0 || !strings.Contains(got.stdout, "waiting") {
		t.Errorf("%+v", got)
	}
}
