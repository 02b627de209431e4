package mockmodel

import (
	"encoding/json"
	"slices"
	"strings"
)

// object is a JSON object of a wire format.
type object = map[string]any

// conversation is the content of a request, independent of the API.
type conversation struct {
	model  string
	stream bool
	prompt string // text of the user's latest message
	turn   int    // number of the user's messages
	step   int    // messages of the model since the user's latest message whose calls have results
	tools  []tool
}

// tool is a tool that the CLI offers to the model.
type tool struct {
	name   string
	schema object
	// code means that the input is program text instead of an object: codex's exec tool takes JavaScript.
	code bool
}

// wire is the format of an API.
type wire interface {
	// parse reads the request's conversation and ignores anything unexpected.
	parse(body object) conversation
	// fault returns the body of an error response.
	fault(f *Fault) object
	// reply writes one message of the model.
	reply(r *reply)
}

// parseRequest selects the API by the path and parses the body. For other paths the wire is nil.
func parseRequest(path string, raw []byte) (wire, conversation) {
	var api wire
	switch {
	case strings.HasSuffix(path, "/v1/messages"):
		api = messages{}
	case strings.HasSuffix(path, "/v1/responses"):
		api = responses{}
	default:
		return nil, conversation{}
	}
	var body object
	_ = json.Unmarshal(raw, &body) // a broken body is an empty conversation
	c := api.parse(body)
	c.model = text(body["model"])
	c.stream, _ = body["stream"].(bool)
	return api, c
}

// message is an entry of a conversation: the user's text, or results of tools.
type message struct {
	text    string
	results []string // ids of the answered calls
}

// countTurns counts the user's messages, and the model's messages whose calls have been answered since the latest of them. A
// message may have several calls, whose results may arrive separately.
func (c *conversation) countTurns(ms []message) {
	answered := map[string]bool{}
	for _, m := range slices.Backward(ms) {
		switch {
		case m.results == nil:
			if c.turn == 0 {
				c.prompt = m.text
			}
			c.turn++
		case c.turn == 0:
			for _, id := range m.results {
				answered[id[:max(strings.LastIndexByte(id, '_'), 0)]] = true
			}
		}
	}
	c.step = len(answered)
}

// content joins the text of a message, which is a string or a list of parts of the given type.
func content(v any, partType string) string {
	if s, ok := v.(string); ok {
		return s
	}
	var all []string
	for _, p := range list(v) {
		if p := asObject(p); text(p["type"]) == partType {
			all = append(all, text(p["text"]))
		}
	}
	return strings.Join(all, "\n")
}

func list(v any) []any      { l, _ := v.([]any); return l }
func asObject(v any) object { m, _ := v.(object); return m }
func text(v any) string     { s, _ := v.(string); return s }
