package mockmodel

import (
	"encoding/json"
	"slices"
	"strings"
)

// object is a JSON object of a wire format.
type object = map[string]any

// conversation is what a request says, whichever API it came by.
type conversation struct {
	model  string
	stream bool
	prompt string // text of the user's latest message
	turn   int    // how many messages the user has sent
	step   int    // messages of the model since the latest of them that got tool results
	tools  []tool
}

// tool is one that the CLI offers to the model.
type tool struct {
	name   string
	schema object
	// code says that the input is a program text, not an object: codex's exec tool takes JavaScript.
	code bool
}

// wire is one API's format.
type wire interface {
	// parse reads the request's conversation; what is not as expected is ignored.
	parse(body object) conversation
	// fault is the body of an error.
	fault(f *Fault) object
	// reply writes one message of the model.
	reply(r *reply)
}

// converse finds the API by the path and parses the body; without one the wire is nil.
func converse(path string, raw []byte) (wire, conversation) {
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

// message is one entry of a conversation: the user's text, or results of tools.
type message struct {
	text    string
	results []string // ids of the calls they answer
}

// follow counts from the end: the model's messages whose calls have been answered since the user's latest message. A
// message may have several calls, and their results may come one by one.
func (c *conversation) follow(ms []message) {
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
		if p := dict(p); text(p["type"]) == partType {
			all = append(all, text(p["text"]))
		}
	}
	return strings.Join(all, "\n")
}

func list(v any) []any  { l, _ := v.([]any); return l }
func dict(v any) object { m, _ := v.(object); return m }
func text(v any) string { s, _ := v.(string); return s }
