// Package servertools keeps a model's service from reaching the internet on behalf of a sandbox.
//
// Services run some tools themselves: they search the web, fetch pages, call remote MCP servers, run code, and load images
// and files from addresses. Whoever may send a request to such a service can have it send anything anywhere, past every
// allow-list. [Filter] takes definitions of such tools out of requests, and refuses what cannot be taken out. It knows the
// requests of Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini; what it does not know passes.
//
// Package sandboxes/egress is its caller.
package servertools

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// Error refuses a request.
type Error struct {
	Tool string // what the service would do, in the request's words, as text for people; empty: the body is no JSON
}

func (e *Error) Error() string {
	if e.Tool == "" {
		return "the request's body is not JSON in UTF-8"
	}
	return e.Tool + " would have the model's service reach the internet from outside the sandbox"
}

// Answer is the body of a refusal, as services write theirs: it has the members of Anthropic's, OpenAI's and Google's.
func Answer(text string) string {
	type details struct {
		Type    string `json:"type"`
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	all, _ := json.Marshal(struct { // strings always marshal
		Type  string  `json:"type"`
		Error details `json:"error"`
	}{"error", details{"permission_error", "PERMISSION_DENIED", text}})
	return string(all)
}

// Filter returns the body of a request without the tools that the service itself would run; removed is told of each. The
// length stays: what is taken out becomes spaces. Nothing is held back but one definition, so memory is bounded. What
// comes before a refusal is passed on; the request is then incomplete, and Read returns an *Error. Closing closes the body.
// The reader belongs to one goroutine.
func Filter(body io.ReadCloser, removed func(tool string)) io.ReadCloser {
	return &filter{ReadCloser: body, removed: removed, scan: scan{next: value}}
}

type filter struct {
	io.ReadCloser
	removed func(string)
	scan
	out   []byte // what may be passed on
	done  error  // after out
	piece []byte
}

func (f *filter) Read(p []byte) (int, error) {
	for len(f.out) == 0 && f.done == nil {
		if f.piece == nil {
			f.piece = make([]byte, 16<<10)
		}
		n, err := f.ReadCloser.Read(f.piece)
		for rest := f.piece[:n]; len(rest) > 0 && f.done == nil; rest = rest[1:] {
			rest = f.skip(rest)
			if len(rest) == 0 {
				break
			}
			f.done = f.step(rest[0])
		}
		if f.done == nil && err == io.EOF {
			f.done = f.end()
		}
		if f.done == nil {
			f.done = err
		}
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	if len(f.out) == 0 {
		f.out = nil
		return n, f.done
	}
	return n, nil
}

// end is the end of the body, whole or not.
func (f *filter) end() error {
	if f.mode == between && f.next == value && len(f.stack) == 0 {
		return nil // no body at all
	}
	if f.mode == literal {
		f.mode = between
		if err := f.ended(); err != nil {
			return err
		}
	}
	if f.mode != between || f.next != nothing {
		return &Error{}
	}
	return nil
}

// begin is the begin of a value of this place; c is its first byte.
func (f *filter) begin(p place, c byte) error {
	switch {
	case p == remote && c == '{', p == search && c == '{':
		return &Error{p.String()}
	case p == tool || p == tools && c == '{':
		if !f.holding {
			f.hold()
		}
		f.holds, f.holdDepth = tool, len(f.stack)
		if p == tools {
			f.holds = tools
		}
	case p == choice:
		f.hold()
		f.holds, f.holdDepth = choice, len(f.stack)
	}
	return nil
}

// ended is the end of a value.
func (f *filter) ended() error {
	if len(f.stack) == 0 {
		f.next = nothing
	} else {
		f.top().next = comma
	}
	if !f.holding || len(f.stack) != f.holdDepth {
		return nil
	}
	held := f.held
	f.holding, f.held = false, nil
	object := bytes.TrimLeft(held, ", \t\r\n")
	switch f.holds {
	case choice:
		chosen, err := readChoice(object)
		f.top().choice = append(f.top().choice, chosen...)
		f.out = append(f.out, held...)
		return err
	case tools:
		if name, _, _ := serverTool(object, 0); name != "" {
			return &Error{name}
		}
		f.out = append(f.out, held...)
		return nil
	default:
		return f.decide(held, object)
	}
}

// decide passes a tool's definition on, or leaves it out.
func (f *filter) decide(held, object []byte) error {
	list := f.top()
	name, own, apart := serverTool(object, 0)
	if name == "" {
		if list.kept == 0 && held[0] == ',' {
			held[0] = ' '
		}
		list.kept++
		f.out = append(f.out, held...)
		return nil
	}
	if !apart {
		return &Error{name}
	}
	list.left = name
	if len(f.stack) > 1 {
		owner := &f.stack[len(f.stack)-2]
		owner.removed = append(owner.removed, own...)
	}
	f.removed(name)
	f.out = append(f.out, bytes.Repeat([]byte{' '}, len(held))...)
	return nil
}

// closed is the end of an object or array.
func (f *filter) closed(was *frame) error {
	if was.place == tools && was.kept == 0 && was.left != "" {
		return &Error{was.left} // the request was for this alone
	}
	for _, name := range was.choice {
		for _, gone := range was.removed {
			if name == gone {
				return &Error{name}
			}
		}
	}
	return nil
}

// linked checks the address of an image or file.
func (f *filter) linked(address string) error {
	address = plainWord(strings.TrimSpace(address))
	if address == "" || strings.HasPrefix(address, "data:") {
		return nil
	}
	return &Error{"the address of an image or file"}
}

// member is a key of an object, with its value.
type member struct {
	key   string // plain
	value json.RawMessage
}

// members reads an object, with every key that is there twice; none for anything else.
func members(object []byte) (all []member) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var m member
		if err != nil || !ok || d.Decode(&m.value) != nil {
			return all
		}
		m.key = plainWord(name)
		all = append(all, m)
	}
	return all
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // anything else is no name
	return s
}

// plainWord is a name without what services do not tell apart: case, dashes and underscores.
func plainWord(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(strings.ToUpper(s)))
}

// deepestTools is how many groups of tools may be in one another.
const deepestTools = 8

// serverTool reports the tool that the service itself would run, by its type; empty when there is none. Own are the names
// by which a request can choose it. Apart means that the definition has nothing else.
func serverTool(object []byte, depth int) (kind string, own []string, apart bool) {
	if depth > deepestTools {
		return "a group of tools in too many others", nil, false
	}
	apart = true
	for _, m := range members(object) {
		switch m.key {
		case "type":
			if t := text(m.value); runsThere(t) {
				kind = t
			}
		case "name", "serverlabel":
			own = append(own, text(m.value))
		case "googlesearch", "googlesearchretrieval", "urlcontext", "codeexecution", "googlemaps", "enterprisewebsearch", "mcpservers":
			kind = m.key
		case "functiondeclarations":
			apart = false
		case "environment": // of a shell
			for _, e := range members(m.value) {
				if e.key == "type" && strings.HasPrefix(plainWord(text(e.value)), "container") {
					kind = "a shell in a container of the service"
				}
			}
		case "tools": // a namespace
			var list []json.RawMessage
			_ = json.Unmarshal(m.value, &list) // anything else is no list of tools
			for _, nested := range list {
				if k, _, _ := serverTool(nested, depth+1); k != "" {
					return k, nil, false
				}
			}
		}
	}
	return kind, own, apart
}

// runsThere reports whether the service runs tools of this type, with access to the internet.
func runsThere(kind string) bool {
	kind = plainWord(kind)
	for _, begin := range []string{"websearch", "webfetch", "codeexecution", "codeinterpreter", "mcp", "urlcontext", "googlesearch"} {
		if strings.HasPrefix(kind, begin) {
			return true
		}
	}
	return false
}

// readChoice returns the names of tools that the request asks for. A choice of a server's tool is refused.
func readChoice(object []byte) (names []string, err error) {
	if kind, _, _ := serverTool(object, 0); kind != "" {
		return nil, &Error{kind}
	}
	for _, m := range members(object) {
		if m.key == "name" {
			names = append(names, text(m.value))
		}
	}
	return names, nil
}
