package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// receiver is a collector that stores what it gets.
type receiver struct {
	mu     sync.Mutex
	bodies [][]byte // guarded by mu
	token  string   // guarded by mu
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies, r.token = append(r.bodies, body), req.Header.Get("Authorization")
}

// spans counts the received spans by name.
func (r *receiver) spans(t *testing.T) map[string]int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for _, body := range r.bodies {
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Fatal(err)
		}
		for _, s := range data.ResourceSpans[0].ScopeSpans[0].Spans {
			n[s.Name]++
		}
	}
	return n
}

func TestWorkSendsTraces(t *testing.T) {
	t.Parallel()
	var got receiver
	server := httptest.NewServer(&got)
	defer server.Close()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/fix.md", "---\ntitle: Fix the hostile thing\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	env := func(h *compose.Host) {
		h.Env = append(h.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20a-secret-token", "SEEN="+filepath.Join(m.root, "seen"))
	}
	args := []string{"work", "--sandbox=none", "--commit-author=Ada <a@example.invalid>", "--agent-command=" + strings.Replace(committing, "cat >/dev/null", `cat >/dev/null; env > "$SEEN"`, 1), "--agent-env=SEEN", "--gate=true"}
	if done := m.run(t, env, args...); done.status != 0 || len(got.bodies) > 0 {
		t.Fatalf("traces are not off by default: %+v", done)
	}
	m.write(t, ".ralph/backlog/more.md", "---\ntitle: Fix the hostile thing\nlabels: [no-human]\n---\nDo it.\n")
	m.own(t, "traces: otlp\n")
	if done := m.run(t, env, args...); done.status != 0 {
		t.Fatalf("%+v", done)
	}
	spans := got.spans(t)
	for _, name := range []string{"run", "claim", "prepare", "work", "iteration 1", "agent", "verify", "publish", "report", "release"} {
		if spans[name] != 1 {
			t.Errorf("%d spans %q of %v", spans[name], name, spans)
		}
	}
	seen, err := os.ReadFile(filepath.Join(m.root, "seen"))
	if got.token != "Bearer a-secret-token" || bytes.Contains(bytes.Join(got.bodies, nil), []byte("hostile")) || err != nil || bytes.Contains(seen, []byte("a-secret-token")) {
		t.Errorf("token %q, %v\n%s", got.token, err, seen)
	}
}

func TestTracesRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc") }, "work", "--sandbox=none", "--agent-command=true", "--traces=otlp")
	if got.status != exit.Usage || !strings.Contains(got.stderr, `traces: OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported`) {
		t.Errorf("%+v", got)
	}
	m.write(t, ".ralph/config.yaml", "traces: otlp\n")
	if got := m.run(t, nil, "work", "--sandbox=none", "--agent-command=true"); got.status != exit.Usage || !strings.Contains(got.stderr, "a repository may not set this key") {
		t.Errorf("%+v", got)
	}
}

// An unreachable collector only costs a sweep one line of output.
func TestWorkWithoutCollector(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/fix.md", "---\ntitle: Fix it\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL) },
		"work", "--sandbox=none", "--commit-author=Ada <a@example.invalid>", "--agent-command="+committing, "--traces=otlp")
	if got.status != 0 || strings.Count(got.stderr, "traces are not sent") != 1 {
		t.Errorf("%+v", got)
	}
}
