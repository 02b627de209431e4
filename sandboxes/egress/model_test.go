package egress_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// A model's service gets no request with which it would access the internet. A refusal is in the service's own format.
func TestModelEndpoint(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body, coding, arrives string
		status                int
		says, event           string
	}{
		"plain":     {body: `{"tools":[{"name":"Bash"}]}`, arrives: `{"tools":[{"name":"Bash"}]}`, status: 200},
		"no body":   {status: 200},
		"a search":  {body: `{"tools":[{"name":"Bash"},{"type":"web_search"}]}`, arrives: `{"tools":[{"name":"Bash"}                      ]}`, status: 200, event: "server-tool api:0"},
		"a server":  {body: `{"mcp_servers":[{"url":"https://evil.example"}]}`, status: 403, says: "mcp_servers would have the model's service reach what is outside the sandbox", event: "server-tool api:0"},
		"no JSON":   {body: `tool=web_search`, status: 400, says: "not JSON", event: "malformed api:0"},
		"not whole": {body: `{"a":`, status: 400, says: "not JSON", event: "malformed api:0"},
		"in gzip":   {body: `{}`, coding: "gzip", status: 400, says: "the encoding gzip cannot be checked", event: "malformed api:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got atomic.Value
			r, _ := api(t, func(e *egress.Endpoint) { e.Model = true }, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
				body, err := io.ReadAll(q.Body)
				if err != nil {
					return
				}
				if int64(len(body)) != q.ContentLength && tt.body != "" {
					t.Errorf("%d bytes of %d", len(body), q.ContentLength)
				}
				got.Store(string(body))
				fmt.Fprint(w, "ok")
			})
			res := ask(t, r, func(q *http.Request) {
				q.Body, q.ContentLength, q.GetBody = io.NopCloser(strings.NewReader(tt.body)), int64(len(tt.body)), nil
				if tt.coding != "" {
					q.Header.Set("Content-Encoding", tt.coding)
				}
			})
			body, err := io.ReadAll(res.body)
			if arrived, _ := got.Load().(string); err != nil || res.status != tt.status || !strings.Contains(string(body), tt.says) || arrived != tt.arrives {
				t.Errorf("%d %s, %v; %q arrived", res.status, body, err, arrived)
			}
			var e struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if res.status == 403 && (json.Unmarshal(body, &e) != nil || e.Type != "error" || e.Error.Type != "permission_error" || !strings.Contains(e.Error.Message, tt.says)) {
				t.Errorf("body %s", body)
			}
			if tt.event == "" {
				r.wantRefused(t)
			} else {
				r.wantRefused(t, tt.event)
			}
		})
	}
}

// A large request waits for others only until they are sent or refused. A request that is too large is refused.
func TestModelEndpointBoundsBodies(t *testing.T) {
	t.Parallel()
	large := `{"messages":"` + strings.Repeat("x", 2<<20) + `"}`
	r, _ := api(t, func(e *egress.Endpoint) { e.Model = true }, egress.Limits{Request: 4 << 20}, func(w http.ResponseWriter, q *http.Request) {
		n, _ := io.Copy(io.Discard, q.Body)
		fmt.Fprint(w, n)
	})
	send := func(body string) (int, string) {
		t.Helper()
		res := ask(t, r, func(q *http.Request) {
			q.Body, q.ContentLength, q.GetBody = io.NopCloser(strings.NewReader(body)), -1, nil
		})
		text, err := io.ReadAll(res.body)
		if err != nil {
			t.Fatal(err)
		}
		return res.status, string(text)
	}
	for range 6 {
		if status, text := send(large); status != 200 || text != fmt.Sprint(len(large)) {
			t.Errorf("%d %.100s", status, text)
		}
		if status, text := send(large[1:]); status != 400 {
			t.Errorf("no JSON: %d %.100s", status, text)
		}
	}
	tooLarge := large + strings.Repeat(" ", 4<<20-len(large)+1) // by so little that the answer does not break the request off
	if status, text := send(tooLarge); status != 413 || !strings.Contains(text, "more than 4194304 bytes") {
		t.Errorf("too large: %d %.100s", status, text)
	}
}

// The program hangs up while its request waits to be admitted. That is no refusal.
func TestModelEndpointHangsUp(t *testing.T) {
	t.Parallel()
	waits, over := make(chan struct{}), make(chan struct{})
	r, _ := api(t, func(e *egress.Endpoint) {
		e.Model = true
		e.Admit = func(ctx context.Context, _, _ string, _ []byte) (egress.Exchange, error) {
			defer close(over)
			close(waits)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	}, egress.Limits{}, func(http.ResponseWriter, *http.Request) { t.Error("the request came to the service") })
	ctx, hangUp := context.WithCancelCause(t.Context())
	go func() {
		<-waits
		hangUp(nil)
	}()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:15381/v1/messages", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := r.client(t, "endpoint 0", nil).Do(q); err == nil {
		_ = res.Body.Close()
		t.Errorf("answer %d", res.StatusCode)
	}
	<-over
	if err := r.Close(); err != nil { // waits for the requests
		t.Error(err)
	}
	r.wantRefused(t)
}
