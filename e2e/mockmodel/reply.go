package mockmodel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// reply is a message of the model to the client.
type reply struct {
	w       http.ResponseWriter
	request context.Context // ends when the client disconnects
	server  context.Context // ends when the server closes
	conv    conversation
	step    Step
	id      string
	pieces  []string // the text in pieces for streaming
	calls   []toolCall
}

func newReply(server context.Context, w http.ResponseWriter, r *http.Request, conv conversation, step Step) *reply {
	m := &reply{w: w, request: r.Context(), server: server, conv: conv, step: step, pieces: split(step.Text)}
	m.id = fmt.Sprintf("mock%02d%02d", conv.turn, conv.step) // unique within one conversation
	for i, c := range step.Calls {
		if call, ok := callShell(conv.tools, fmt.Sprintf("%s_%d", m.id, i), c.Command); ok {
			m.calls = append(m.calls, call)
		}
	}
	return m
}

// text returns the whole text.
func (m *reply) text() string { return strings.Join(m.pieces, "") }

// cut performs a stall or an abort after the first piece of text. It reports whether the response ends there. An abort also
// closes the connection.
func (m *reply) cut(piece int) bool {
	if piece != 0 {
		return false
	}
	if m.step.Hang {
		select {
		case <-m.request.Done():
		case <-m.server.Done():
		}
		return true
	}
	if m.step.Truncate {
		panic(http.ErrAbortHandler)
	}
	return false
}

// split cuts text into pieces of whole runes, like a model's stream.
func split(s string) []string {
	if s == "" {
		return nil
	}
	runes := []rune(s)
	size := max(16, len(runes)/64)
	var pieces []string
	for len(runes) > 0 {
		n := min(size, len(runes))
		pieces = append(pieces, string(runes[:n]))
		runes = runes[n:]
	}
	return pieces
}

// events starts a stream of server-sent events and returns a function that sends one.
func (m *reply) events() func(name string, data object) {
	m.w.Header().Set("Content-Type", "text/event-stream")
	m.w.Header().Set("Cache-Control", "no-cache")
	m.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(m.w)
	return func(name string, data object) {
		data["type"] = name
		fmt.Fprintf(m.w, "event: %s\ndata: %s\n\n", name, encode(data))
		_ = flush.Flush() // the next write reports a disconnected client
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(v))
}

// encode does not escape <, > and &, like the services.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("mock model: " + err.Error()) // only strings, numbers, lists and objects come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
