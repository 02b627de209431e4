// Package mockmodel is a scripted stand-in for the model services that coding CLIs call: the real programs run against
// it on loopback, without a key, a network or a model.
//
// It speaks the Anthropic Messages and the OpenAI Responses wire formats, with server-sent events and without. What it
// answers is a [Scenario], chosen by [Options] or by the path prefix /s/<name>. The step of a scenario follows from the
// request alone (the messages whose calls got results since the last message of the user), so that one server serves many sessions at once;
// only a [Fault] that passes after a number of requests is counted, per scenario and server.
//
// The end-to-end tests are its callers. A Server is safe for concurrent use.
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

// maxBody bounds one request; the CLIs send their whole conversation each time.
const maxBody = 64 << 20

// Options configures a Server. Its zero value serves the built-in scenarios, "commit" where none is asked for.
type Options struct {
	// Scenario answers requests whose path names none; default "commit".
	Scenario string
	// Scenarios are added to the built-in ones, and replace those of the same name.
	Scenarios Scenarios
}

// Server answers as a model service would. Use it as an http.Handler, or let it Listen. Close it in either case.
type Server struct {
	scenario  string
	scenarios Scenarios
	ctx       context.Context // ends stalled answers; cancelled by Close
	cancel    context.CancelCauseFunc

	mu       sync.Mutex
	requests []Request      // guarded by mu
	faults   map[string]int // guarded by mu; requests each scenario has failed
	http     *http.Server   // guarded by mu; nil before Listen
	served   chan struct{}  // guarded by mu; closed when http has ended
}

// Request is one call that the server has received.
type Request struct {
	Method   string
	Path     string // without the scenario's prefix; for CONNECT, the host
	Scenario string
	Prompt   string // text of the user's latest message; empty for calls that are no conversation
	Step     int    // which step of the scenario it asked for
	Body     json.RawMessage
}

var errClosed = errors.New("mock model is closed")

// New makes a server. It listens nowhere yet.
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

// Listen serves on addr, such as "127.0.0.1:0", until Close, and returns the base URL. An address that is not on
// loopback is refused.
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
		_ = h.Serve(l) // always ends with an error; only Close ends it
	}()
	return "http://" + l.Addr().String(), nil
}

// Close ends all answers, stalled ones too, and frees the port. It is idempotent.
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

// Requests returns what the server has received so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers one request.
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
	api, conv := converse(q.Path, body)
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

// answer plays the step of the scenario that the conversation has come to.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q Request, api wire, conv conversation) {
	scenario, ok := s.scenarios[q.Scenario]
	if !ok {
		msg := fmt.Sprintf("mock model: no scenario %q", q.Scenario)
		writeJSON(w, http.StatusBadRequest, api.fault(&Fault{Type: "invalid_request_error", Message: msg}))
		return
	}
	if f := scenario.Fault; f != nil && conv.step >= f.FromStep && s.faulty(q.Scenario, f) {
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
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

// faulty counts a request against a passing fault and reports whether it still fails.
func (s *Server) faulty(name string, f *Fault) bool {
	if f.First == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[name]++
	return s.faults[name] <= f.First
}
