package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Only the service decides whether it is unavailable, and until when: not a request that it rejects, and not an agent that hangs up.
func TestRefusalsAreSeen(t *testing.T) {
	t.Parallel()
	const end = 1_900_000_000
	for name, tt := range map[string]struct {
		status  int // 0: no answer
		header  map[string]string
		body    string
		breaks  bool // in the answer
		hangsUp bool
		refused bool
		end     int64
	}{
		"answered":                {status: 200, body: said("m", 1, 1)},
		"a wrong request":         {status: 400, body: `{"error":{"type":"invalid_request_error"}}`},
		"an unknown model":        {status: 404},
		"no credit":               {status: 400, body: `{"error":{"message":"Your credit balance is too low"}}`, refused: true},
		"no login":                {status: 401, refused: true},
		"overloaded":              {status: 529, header: map[string]string{"Anthropic-Ratelimit-Unified-Reset": "1900000000"}, refused: true},
		"limited":                 {status: 429, refused: true},
		"limited by Anthropic":    {status: 429, header: map[string]string{"Anthropic-Ratelimit-Unified-Reset": "1900000000", "Retry-After": "7"}, refused: true, end: end},
		"limited by OpenAI":       {status: 429, body: `{"error":{"type":"usage_limit_reached","resets_at":1900000000}}`, refused: true, end: end},
		"limited for a while":     {status: 429, header: map[string]string{"Retry-After": "60"}, refused: true, end: -60},
		"limited for ever":        {status: 429, header: map[string]string{"Retry-After": "99999999999", "Anthropic-Ratelimit-Unified-Reset": "x"}, refused: true},
		"not reached":             {refused: true},
		"given up":                {hangsUp: true},
		"broken off":              {status: 200, body: "data: {}\n\n", breaks: true, refused: true},
		"broken off by the agent": {status: 200, body: "data: {}\n\n", breaks: true, hangsUp: true},
		"an error at the end":     {status: 200, body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", refused: true},
		"an error in the text":    {status: 200, body: `data: {"delta":"{\"type\":\"overloaded_error\"}"}` + "\n\n"},
		"answered later":          {status: 200, body: `{"status":"queued","usage":null}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := NewMeter(Network{}, "r")
			m.Limit(loop.Budget{})
			ctx, hangUp := context.WithCancelCause(t.Context())
			x := askFor(ctx, t, m, "{}")
			_, _ = io.ReadAll(x.Request(io.NopCloser(strings.NewReader("{}"))))
			if tt.status > 0 {
				body := iotest.OneByteReader(strings.NewReader(tt.body)) // a service sends the end of an error by itself
				if tt.breaks {
					body = io.MultiReader(body, iotest.ErrReader(errors.New("broken")))
				}
				header := http.Header{}
				for key, value := range tt.header {
					header.Set(key, value)
				}
				_, _ = io.Copy(io.Discard, answering(x, tt.status, header, body))
			}
			if tt.hangsUp {
				hangUp(nil)
			}
			if name == "not reached" {
				x.Unreached("127.0.0.1:1", "connection refused")
			}
			x.End()
			hangUp(nil)
			got, want := m.Requests(agents.Link{}), time.Unix(tt.end, 0)
			switch {
			case tt.end == 0:
				want = time.Time{}
			case tt.end < 0:
				want = time.Now().Add(time.Duration(-tt.end) * time.Second)
			}
			if unreached := "127.0.0.1:1 cannot be reached: connection refused"; (got.Unreached == unreached) != (name == "not reached") {
				t.Errorf("%s: %q", name, got.Unreached)
			}
			if got.Refused != tt.refused || !got.LimitEnd.Equal(want) {
				t.Errorf("%s: refused %v until %s, want %v until %s", name, got.Refused, got.LimitEnd, tt.refused, want)
			}
		})
	}
}
