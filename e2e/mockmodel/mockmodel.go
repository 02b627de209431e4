// Package mockmodel is a scripted replacement for the model services that coding CLIs call: the real programs run against it
// on loopback, without a key, a network or a model.
//
// It implements the Anthropic Messages and the OpenAI Responses APIs, with and without server-sent events. Its answers
// follow a [Scenario], selected by [Options] or by the path prefix /s/<name>. The step of a scenario depends only on the
// request (the number of messages whose calls have results since the user's last message), so that one server handles many
// sessions at once. Only a [Fault] with a limited number of failures needs a count, kept per scenario and server.
//
// The end-to-end tests call it. A Server is safe for concurrent use.
package mockmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody is the maximum size of a request in bytes. CLIs send the whole conversation each time.
const maxBody = 64 << 20

// Options configures a Server. The zero value serves the built-in scenarios, with "commit" as the default.
type Options struct {
	// Scenario is used for requests whose path names none. Default: "commit".
	Scenario string
	// Scenarios are added to the built-in ones and override those with the same name.
	Scenarios Scenarios
}

// Server behaves like a model service. Use it as an http.Handler, or call Listen. Close it in either case.
type Server struct {
	scenario  string
	scenarios Scenarios
	ctx       context.Context // cancelled by Close; ends stalled responses
	cancel    context.CancelCauseFunc

	mu       sync.Mutex
	requests []Request      // guarded by mu
	faults   map[string]int // guarded by mu; number of failed requests by scenario
	http     *http.Server   // guarded by mu; nil before Listen
	served   chan struct{}  // guarded by mu; closed when http has ended
}

// Request is a request that the server has received.
type Request struct {
	Method   string
	Path     string // without the scenario's prefix; for CONNECT, the host
	Scenario string
	Prompt   string // text of the user's latest message; empty for other requests
	Step     int    // step of the scenario
	Body     json.RawMessage
}

var errClosed = errors.New("mock model is closed")

// New returns a server that does not listen yet.
func New(o Options) *Server {
	all := Builtin()
	for name, s := range o.Scenarios {
		all[name] = s
	}
	if o.Scenario == "" {
		o.Scenario = "commit"
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Server{scenario: o.Scenario, scenarios: all, ctx: ctx, cancel: cancel, faults: map[string]int{}}
}

// Listen serves on addr, such as "127.0.0.1:0", until Close, and returns the base URL. The address must be a loopback address.
func (s *Server) Listen(addr string) (url string, err error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("listen on %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", fmt.Errorf("listen on %q: only a loopback address such as 127.0.0.1:0 is served", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil || s.ctx.Err() != nil {
		return "", errors.Join(errors.New("listen: the server is listening or closed already"), l.Close())
	}
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	s.http, s.served = h, served
	go func() {
		defer close(served)
		_ = h.Serve(l) // returns an error in any case, after Close
	}()
	return "http://" + l.Addr().String(), nil
}

// Close aborts all responses, including stalled ones, and frees the port. It is idempotent.
func (s *Server) Close() error {
	s.cancel(errClosed)
	s.mu.Lock()
	h, served := s.http, s.served
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	err := h.Close()
	<-served
	return err
}

// Requests returns the requests received so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP handles a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the client has gone
	}
	q := Request{Method: r.Method, Path: r.URL.Path, Scenario: s.scenario}
	if r.Method == http.MethodConnect {
		q.Path = r.Host
	}
	if rest, ok := strings.CutPrefix(q.Path, "/s/"); ok {
		name, tail, _ := strings.Cut(rest, "/")
		q.Scenario, q.Path = name, "/"+tail
	}
	if json.Valid(body) {
		q.Body = body
	}
	api, conv := parseRequest(q.Path, body)
	q.Prompt, q.Step = conv.prompt, conv.step
	s.mu.Lock()
	s.requests = append(s.requests, q)
	s.mu.Unlock()

	switch {
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	case api != nil:
		s.answer(w, r, q, api, conv)
	case strings.HasSuffix(q.Path, "/messages/count_tokens"):
		writeJSON(w, http.StatusOK, object{"input_tokens": len(body) / 4})
	case strings.HasSuffix(q.Path, "/models"):
		model := object{"id": "mock-model", "object": "model", "type": "model", "display_name": "Mock", "created": 1}
		writeJSON(w, http.StatusOK, object{"object": "list", "data": []any{model}, "has_more": false})
	default:
		msg := fmt.Sprintf("mock model: nothing at %s %s", r.Method, q.Path)
		writeJSON(w, http.StatusNotFound, object{"error": object{"type": "not_found_error", "message": msg}})
	}
}

// answer plays the conversation's current step of the scenario.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q Request, api wire, conv conversation) {
	scenario, ok := s.scenarios[q.Scenario]
	if !ok {
		msg := fmt.Sprintf("mock model: no scenario %q", q.Scenario)
		writeJSON(w, http.StatusBadRequest, api.fault(&Fault{Type: "invalid_request_error", Message: msg}))
		return
	}
	if f := scenario.Fault; f != nil && conv.step >= f.FromStep && s.shouldFail(q.Scenario, f) {
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		if f.LimitEnd != "" {
			w.Header().Set("Anthropic-Ratelimit-Unified-Reset", f.LimitEnd)
		}
		writeJSON(w, f.Status, api.fault(f))
		return
	}
	step, err := scenario.step(conv)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, api.fault(&Fault{Type: "invalid_request_error", Message: err.Error()}))
		return
	}
	api.reply(newReply(s.ctx, w, r, conv, step))
}

// shouldFail counts a request for a temporary fault and reports whether it must fail.
func (s *Server) shouldFail(name string, f *Fault) bool {
	if f.First == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[name]++
	return s.faults[name] <= f.First
}
