package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

const (
	secret      = "sk-very-secret-0123456789"
	placeholder = "ralph-placeholder"
)

func fixed(value string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, nil }
}

// api returns a rig with an endpoint for api.example.com, which the handler serves. logged is the whole output of the log.
func api(t testing.TB, change func(*egress.Endpoint), limits egress.Limits, h http.HandlerFunc) (r *rig, logged *bytes.Buffer) {
	t.Helper()
	address, roots := service(t, h)
	net := newInternet()
	net.host("example.com", somewhere, 443, address)
	e := egress.Endpoint{Name: "api", Upstream: "https://example.com/base/", Secret: fixed(secret)}
	if change != nil {
		change(&e)
	}
	logged = &bytes.Buffer{}
	r = newRig(t, egress.Config{
		Endpoints: []egress.Endpoint{e}, Limits: limits, Resolver: net, Dial: net.dial, Roots: roots,
		Log: slog.New(slog.NewJSONHandler(logged, nil)),
	})
	t.Cleanup(func() {
		_ = r.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		if bytes.Contains(r.bytes.Bytes(), []byte(secret)) {
			t.Errorf("the secret came into the sandbox:\n%s", r.bytes.Bytes())
		}
		if bytes.Contains(logged.Bytes(), []byte(secret)) {
			t.Errorf("the secret came into the log:\n%s", logged)
		}
	})
	return r, logged
}

// reply is an answer as the sandbox gets it. Its body is closed when the test ends.
type reply struct {
	status int
	header http.Header
	body   io.Reader
}

// ask sends a request to the endpoint.
func ask(t *testing.T, r *rig, change func(*http.Request)) reply {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:15381/v1/messages?beta=true", strings.NewReader("the prompt"))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(q)
	}
	res, err := r.client(t, "endpoint 0", nil).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return reply{res.StatusCode, res.Header, res.Body}
}

func TestEndpointPutsTheCredentialIn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header, format string
		want           string
	}{
		"a bearer token": {"", "", "Authorization: Bearer " + secret},
		"a key":          {"x-api-key", "", "X-Api-Key: " + secret},
		"another format": {"X-Key", "v1 %s", "X-Key: v1 " + secret},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen atomic.Value
			r, _ := api(t, func(e *egress.Endpoint) { e.Header, e.Format = tt.header, tt.format }, egress.Limits{},
				func(w http.ResponseWriter, q *http.Request) {
					body, _ := io.ReadAll(q.Body)
					var all strings.Builder
					fmt.Fprintln(&all, q.Proto, q.Method, q.Host, q.URL, string(body))
					_ = q.Header.Write(&all)
					seen.Store(all.String())
					w.Header().Set("Set-Cookie", "session=1")
				})
			res := ask(t, r, func(q *http.Request) {
				q.Header.Set("Authorization", "Bearer "+placeholder)
				q.Header.Set("X-Api-Key", placeholder)
				if tt.header != "" {
					q.Header.Set(tt.header, placeholder)
				}
				q.Header.Set("Cookie", placeholder)
				q.Header.Set("Anthropic-Beta", "oauth-2025-04-20")
				q.Host = "evil.example.com"
			})
			got, _ := seen.Load().(string)
			if res.status != http.StatusOK || !strings.Contains(got, tt.want+"\r\n") {
				t.Errorf("status %d, the service saw\n%s", res.status, got)
			}
			if !strings.HasPrefix(got, "HTTP/2.0 POST example.com /base/v1/messages?beta=true the prompt") {
				t.Errorf("the service saw\n%s", got)
			}
			if strings.Contains(got, placeholder) || strings.Contains(got, "evil") || !strings.Contains(got, "Anthropic-Beta: oauth-2025-04-20") {
				t.Errorf("the service saw\n%s", got)
			}
			if res.header.Get("Set-Cookie") != "" {
				t.Error("a cookie came into the sandbox")
			}
			r.wantRefused(t)
		})
	}
}

// Both directions stream at the same time: each piece arrives before the next one is sent.
func TestEndpointStreams(t *testing.T) {
	t.Parallel()
	r, _ := api(t, nil, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		in := bufio.NewScanner(q.Body)
		for in.Scan() {
			fmt.Fprintf(w, "data: %s\n\n", in.Text())
			_ = http.NewResponseController(w).Flush()
		}
	})
	up, send := io.Pipe()
	res := ask(t, r, func(q *http.Request) { q.Body, q.ContentLength = up, -1 })
	if res.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("headers %v", res.header)
	}
	in := bufio.NewReader(res.body)
	for _, piece := range []string{"one", "two", "sk-very", "three"} {
		if _, err := io.WriteString(send, piece+"\n"); err != nil {
			t.Fatal(err)
		}
		if got := line(t, in); got != "data: "+piece {
			t.Errorf("got %q, want %q", got, piece)
		}
		line(t, in)
	}
	_ = send.Close()
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("at the end %q, %v", rest, err)
	}
}

// told is a channel that receives each written piece.
type told chan string

func (c told) Write(p []byte) (int, error) { c <- string(p); return len(p), nil }

// exchange observes one request.
type exchange struct {
	told
	answer func(status int, contentType string)
	sent   *bytes.Buffer // bytes sent to the service
	end    chan bool
}

// copied is a body that is also written elsewhere.
type copied struct {
	io.Reader
	io.Closer
}

func (x exchange) Request(body io.ReadCloser) io.ReadCloser {
	return copied{io.TeeReader(body, x.sent), body}
}

func (x exchange) Answer(in *http.Response) io.ReadCloser {
	x.answer(in.StatusCode, in.Header.Get("Content-Type"))
	return copied{io.TeeReader(in.Body, x.told), in.Body}
}

func (exchange) Unreached(string, string) {}

func (x exchange) End() { x.end <- true }

// follow returns a change that makes an endpoint use the exchange.
func follow(x exchange) func(*egress.Endpoint) {
	return func(e *egress.Endpoint) {
		e.Admit = func(context.Context, string, string, []byte) (egress.Exchange, error) { return x, nil }
	}
}

// The exchange gets every piece of the answer before the sandbox does, and the whole request.
func TestEndpointIsFollowed(t *testing.T) {
	t.Parallel()
	var kind string
	var status int
	pieces, next, sent, end := make(told, 10), make(chan struct{}), &bytes.Buffer{}, make(chan bool, 1)
	r, _ := api(t, func(e *egress.Endpoint) {
		follow(exchange{pieces, func(s int, contentType string) { status, kind = s, contentType }, sent, end})(e)
	}, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body) // an answer may arrive before the end of the request
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusTooManyRequests)
		for i := range 2 {
			fmt.Fprintf(w, "piece %d\n\n", i) // nothing is held back across an empty line
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	body := bufio.NewReader(ask(t, r, nil).body)
	for i := range 2 {
		line, err := body.ReadString('\n')
		rest, _ := body.ReadString('\n')
		if want := fmt.Sprintf("piece %d\n\n", i); err != nil || line+rest != want || len(pieces) != 1 || <-pieces != want {
			t.Errorf("got %q, %v; %d more pieces were counted", line, err, len(pieces))
		}
		next <- struct{}{}
	}
	<-end
	if kind != "text/event-stream" || status != http.StatusTooManyRequests || sent.String() != "the prompt" {
		t.Errorf("%d %q after %q", status, kind, sent)
	}
}

// The exchange also sees a request whose client hangs up before the answer, but none that could not be sent.
func TestEndpointIsFollowedToNoAnswer(t *testing.T) {
	t.Parallel()
	sent, end := &bytes.Buffer{}, make(chan bool, 1)
	x := exchange{make(told, 10), func(int, string) { t.Error("there is an answer") }, sent, end}
	ctx, hangUp := context.WithCancelCause(t.Context())
	r, _ := api(t, follow(x), egress.Limits{}, func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		hangUp(nil)
		<-q.Context().Done()
	})
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:15381/v1/messages", strings.NewReader("the prompt"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := r.client(t, "endpoint 0", nil).Do(q); err == nil {
		_ = res.Body.Close()
		t.Error("it was answered")
	}
	if <-end; sent.String() != "the prompt" {
		t.Errorf("%q was sent", sent)
	}
	sent.Reset()
	r, _ = api(t, func(e *egress.Endpoint) { follow(x)(e); e.Upstream = "https://example.com:444" }, egress.Limits{}, nil)
	if res := ask(t, r, nil); res.status != http.StatusBadGateway {
		t.Errorf("status %d", res.status)
	}
	if <-end; sent.Len() != 0 {
		t.Errorf("%q was sent to nobody", sent)
	}
}

// A service that echoes its request does not reveal the secret.
func TestEndpointMasksTheSecret(t *testing.T) {
	t.Parallel()
	r, _ := api(t, nil, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-Echo", q.Header.Get("Authorization"))
		w.Header().Set("Location", "https://evil.example.com/?k="+secret)
		w.WriteHeader(http.StatusUnauthorized)
		for i := range len(secret) { // split at every position
			fmt.Fprint(w, "bad key ", secret[:i])
			_ = http.NewResponseController(w).Flush()
			fmt.Fprint(w, secret[i:], "\n")
			_ = http.NewResponseController(w).Flush()
		}
	})
	res := ask(t, r, nil)
	body, err := io.ReadAll(res.body)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("bad key "+strings.Repeat("*", len(secret))+"\n", len(secret))
	if string(body) != want {
		t.Errorf("body %s", body)
	}
	if res.status != http.StatusUnauthorized || res.header.Get("X-Echo") != "" || res.header.Get("Location") != "" {
		t.Errorf("%d, headers %v", res.status, res.header)
	}
}

// A credential of a few bytes is no secret, so its bytes are not masked in the answer.
func TestEndpointMasksNoLetters(t *testing.T) {
	t.Parallel()
	short := func(e *egress.Endpoint) { e.Secret = fixed("k") }
	r, _ := api(t, short, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
		if got := q.Header.Get("Authorization"); got != "Bearer k" {
			t.Errorf("the service got %q", got)
		}
		w.Header().Set("X-Kind", "makes links")
		fmt.Fprint(w, `{"kind":"tool_call","block":"ok"}`)
	})
	res := ask(t, r, nil)
	if body, err := io.ReadAll(res.body); string(body) != `{"kind":"tool_call","block":"ok"}` || err != nil {
		t.Errorf("body %s, %v", body, err)
	}
	if got := res.header.Get("X-Kind"); got != "makes links" {
		t.Errorf("headers %v", res.header)
	}
}

func TestEndpointFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(evil.Close)
	r, _ := api(t, nil, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, evil.URL, http.StatusTemporaryRedirect)
	})
	if res := ask(t, r, nil); res.status != 307 || res.header.Get("Location") != evil.URL {
		t.Errorf("%d %v", res.status, res.header)
	}
}

func TestEndpointRefuses(t *testing.T) {
	t.Parallel()
	spent := errors.New("the budget of 2 USD is spent")
	for name, tt := range map[string]struct {
		endpoint func(*egress.Endpoint)
		request  func(*http.Request)
		limits   egress.Limits
		status   int
		body     string
		event    string
	}{
		"another path": {
			endpoint: func(e *egress.Endpoint) { e.Routes = []egress.Route{{Path: "/v1/models"}} },
			status:   403, body: "POST /v1/messages is not offered here", event: "endpoint-path api:0",
		},
		"another method": {
			endpoint: func(e *egress.Endpoint) { e.Routes = []egress.Route{{Method: "GET", Path: "/v1/*"}} },
			status:   403, body: "not offered", event: "endpoint-path api:0",
		},
		"a path that climbs": {
			endpoint: func(e *egress.Endpoint) { e.Routes = []egress.Route{{Path: "/v1/*"}} },
			request:  func(q *http.Request) { q.URL.Opaque = "//x/v1/../admin" },
			status:   403, body: "not offered", event: "endpoint-path api:0",
		},
		"an encoded path": {
			endpoint: func(e *egress.Endpoint) { e.Routes = []egress.Route{{Path: "/v1/*"}} },
			request:  func(q *http.Request) { q.URL.Path, q.URL.RawPath = "/v1/../admin", "/v1/%2e%2e/admin" },
			status:   403, body: "not offered", event: "endpoint-path api:0",
		},
		"another host": {
			request: func(q *http.Request) { q.URL.Opaque = "http://evil.example.com/v1/messages" },
			status:  403, body: "not offered", event: "endpoint-path api:0",
		},
		"a spent budget": {
			endpoint: func(e *egress.Endpoint) {
				e.Admit = func(context.Context, string, string, []byte) (egress.Exchange, error) { return nil, spent }
			},
			status: 402, body: spent.Error(), event: "budget api:0",
		},
		"another model": {
			endpoint: func(e *egress.Endpoint) {
				e.Admit = func(context.Context, string, string, []byte) (egress.Exchange, error) {
					return nil, fmt.Errorf("model m is %w", egress.ErrOtherModel)
				}
			},
			status: 403, body: `"message":"ralph's sandbox refuses this connection: other-model: model m is not allowed"`, event: "other-model api:0",
		},
		"no credential": {
			endpoint: func(e *egress.Endpoint) {
				e.Secret = func(context.Context) (string, error) { return "", errors.New("helper printed " + secret) }
			},
			status: 401, body: "no usable credential for api", event: "no-credential api:0",
		},
		"a credential that breaks the header": {
			endpoint: func(e *egress.Endpoint) { e.Secret = fixed(secret + "\r\nX: y") },
			status:   401, body: "no usable credential", event: "no-credential api:0",
		},
		"a request that is too large": {
			limits: egress.Limits{Request: 4}, status: 413, body: "more than 4 bytes", event: "too-much api:0",
		},
		"a service inside": {
			endpoint: func(e *egress.Endpoint) { e.Upstream = "https://127.0.0.1" },
			status:   403, body: "private, local or reserved", event: "address-refused 127.0.0.1:443",
		},
		"a service without an address": {
			endpoint: func(e *egress.Endpoint) { e.Upstream = "https://nowhere.example.com" },
			status:   502, body: "the service at nowhere.example.com:443 cannot be reached: the name has no address", event: "not-resolved nowhere.example.com:443",
		},
		"a service that is not there": {
			endpoint: func(e *egress.Endpoint) { e.Upstream = "https://example.com:444" },
			status:   502, body: "the service at example.com:444 cannot be reached: connection refused", event: "not-connected example.com:444",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := api(t, tt.endpoint, tt.limits, func(_ http.ResponseWriter, q *http.Request) {
				if _, err := io.Copy(io.Discard, q.Body); err == nil {
					t.Error("the request came to the service")
				}
			})
			res := ask(t, r, tt.request)
			body, err := io.ReadAll(res.body)
			if err != nil {
				t.Fatal(err)
			}
			if res.status != tt.status || !strings.Contains(string(body), tt.body) {
				t.Errorf("%d %q, want %d with %q", res.status, body, tt.status, tt.body)
			}
			r.wantRefused(t, tt.event)
		})
	}
}

// With another certificate than the service's, nothing is sent.
func TestEndpointVerifiesTheService(t *testing.T) {
	t.Parallel()
	r, _ := api(t, nil, egress.Limits{}, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	stranger, _ := service(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") }))
	net := newInternet()
	net.host("api.other.test", somewhere, 443, stranger) // has a certificate for example.com
	_ = r
	other := newRig(t, egress.Config{
		Endpoints: []egress.Endpoint{{Name: "api", Upstream: "https://api.other.test", Secret: fixed(secret)}},
		Resolver:  net, Dial: net.dial,
	})
	if res := ask(t, other, nil); res.status != 502 {
		t.Errorf("status %d", res.status)
	}
	other.wantRefused(t, "not-connected api.other.test:443")
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	good := func(change func(*egress.Endpoint)) egress.Config {
		e := egress.Endpoint{Name: "api", Upstream: "https://example.com", Secret: fixed(secret)}
		change(&e)
		return egress.Config{Endpoints: []egress.Endpoint{e}}
	}
	rule := func(r egress.Rule) egress.Config { return egress.Config{Allow: []egress.Rule{r}} }
	for want, c := range map[string]egress.Config{
		`egress endpoint "A B": a name is made of lower-case letters, digits and dashes`: good(func(e *egress.Endpoint) { e.Name = "A B" }),
		`not sent in the clear`:          good(func(e *egress.Endpoint) { e.Upstream = "http://example.com" }),
		`upstream is not a URL`:          good(func(e *egress.Endpoint) { e.Upstream = "https://u:p@example.com" }),
		`has not exactly one %s`:         good(func(e *egress.Endpoint) { e.Format = "Bearer" }),
		`it has no credential`:           good(func(e *egress.Endpoint) { e.Secret = nil }),
		`two have this name`:             {Endpoints: []egress.Endpoint{good(func(*egress.Endpoint) {}).Endpoints[0], good(func(*egress.Endpoint) {}).Endpoints[0]}},
		`egress rule "*"`:                rule(egress.Rule{Host: "*"}),
		`egress rule "*.com": it allows`: rule(egress.Rule{Host: "*.com"}),
		`a star stands only`:             rule(egress.Rule{Host: "a.*.com"}),
		`letters, digits, dashes`:        rule(egress.Rule{Host: "exa/mple.com"}),
		`no names below it`:              rule(egress.Rule{Host: "*.10.0.0.1"}),
		`port 70000`:                     rule(egress.Rule{Host: "example.com", Ports: []int{70000}}),
		`a limit cannot be negative`:     {Limits: egress.Limits{Bytes: -1}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if _, err := egress.New(c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		})
	}
}
