package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// sign closes seen when a text is written.
type sign struct {
	bytes.Buffer
	text string
	once sync.Once
	seen chan struct{}
}

func (s *sign) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.text) {
		s.once.Do(func() { close(s.seen) })
	}
	return n, err
}

// Commands that print nothing else meanwhile say that they wait for a remote. This one answers once they have said so.
func TestSlowRemote(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"doctor", "--sandbox=none", "--agent-command=true"}, {"retry", "a"}, {"clean"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			said := &sign{text: "waiting for remote origin\n", seen: make(chan struct{})}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-said.seen:
				case <-r.Context().Done():
				}
				http.NotFound(w, r)
			}))
			defer server.Close()
			m := newMachine(t)
			m.write(t, ".ralph/backlog/a.md", "# A\n")
			m.commit(t)
			m.remote(t, server.URL+"/a.git")
			m.run(t, func(h *compose.Host) { h.Stderr, h.Patience = said, time.Millisecond }, append(args, "--tracker=local")...)
			if got := said.String(); strings.Count(got, said.text) != 1 {
				t.Errorf("stderr: %s", got)
			}
		})
	}
}
