package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/notify"
)

// People are notified of projects that cannot be opened when the service starts: values without consent, no agent, no repository.
// They are notified as well of a list of projects that is refused later.
func TestServeNotifiesOfProjectsBrokenAtItsStart(t *testing.T) {
	t.Parallel()
	told := make(chan notify.Message, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m notify.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		told <- m
	}))
	t.Cleanup(receiver.Close)
	m, other := newMachine(t), newMachine(t)
	m.own(t, fmt.Sprintf("notify-url: %s\nsandbox: none\ncommit-author: Ada <a@example.invalid>\n", receiver.URL))
	m.write(t, ".ralph/config.yaml", "before: [make deps]\n")
	m.commit(t)
	other.write(t, "README", "hello\n")
	other.commit(t)
	file := filepath.Join(m.root, "serve.yaml")
	list := fmt.Sprintf("projects:\n  - {name: untrusted, repo: %s}\n  - {name: gone, repo: nowhere}\n  - {name: agentless, repo: %s, agent: codex}\n", m.repo, other.repo)
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	interrupt, status := make(chan struct{}), make(chan int, 1)
	var out bytes.Buffer
	errs, h := newTranscript(), m.host(&out, &out)
	h.Stderr, h.Interrupt = errs, interrupt
	go func() { status <- Run(t.Context(), []string{"serve", "--listen", "none", file}, h) }()
	for open := map[string]string{"untrusted": "trust", "gone": "nowhere is not a folder", "agentless": "codex"}; len(open) > 0; {
		select {
		case got := <-told:
			if want := open[got.Project]; want == "" || !strings.Contains(got.Text, want) || !strings.HasPrefix(got.Text, got.Project+" is not worked: ") {
				t.Errorf("%+v", got)
			}
			delete(open, got.Project)
		case <-time.After(time.Minute):
			t.Fatalf("nobody was told of %v\n%s", open, errs.until(t, ""))
		}
	}
	if err := os.WriteFile(file, []byte(list+"poll: tens\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-told:
		if !strings.HasPrefix(got.Text, "the service: configuration refused; the last good one stays: ") || !strings.Contains(got.Text, "poll") {
			t.Errorf("%+v", got)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nobody was told of the list\n%s", errs.until(t, ""))
	}
	close(interrupt)
	if got := <-status; got != 0 || len(told) > 0 {
		t.Errorf("status %d, told %d times more", got, len(told))
	}
}
