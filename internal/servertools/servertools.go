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
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
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

// Filter takes the tools that the service itself would run out of a request's body, and returns them. What is taken out
// becomes spaces. A request that it refuses, with an *Error, must not be sent.
func Filter(body []byte) (removed []string, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil // no body at all
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, &Error{} // what is not understood here, a service might
	}
	f := filter{body: body}
	err = f.request(gjson.ParseBytes(body), 0)
	return f.removed, err
}

type filter struct {
	body    []byte
	removed []string
}

// each has the members of an object, with their plain keys and with every key that is there twice, or the elements of an
// array without keys; nothing for anything else.
func each(v gjson.Result) iter.Seq2[string, gjson.Result] {
	return func(yield func(string, gjson.Result) bool) {
		if v.IsObject() || v.IsArray() {
			v.ForEach(func(key, value gjson.Result) bool { return yield(plainWord(key.Str), value) })
		}
	}
}

// deepest is how many levels are looked into. Each is read once more, so that the time is linear in the request's size.
const deepest = 32

// request looks at a request.
func (f *filter) request(v gjson.Result, depth int) error {
	if depth > deepest {
		return &Error{"a request in too many others"}
	}
	var chosen, gone []string
	for key, value := range each(v) {
		var names []string
		var err error
		switch key {
		case "tools":
			names, err = f.tools(value)
			gone = append(gone, names...)
		case "toolchoice":
			names, err = choice(value)
			chosen = append(chosen, names...)
		case "mcpservers":
			if strings.Contains(value.Raw, "{") {
				err = &Error{"mcp_servers"}
			}
		case "websearchoptions":
			if value.IsObject() {
				err = &Error{"web_search_options"}
			}
		case "messages", "input", "contents", "content", "system", "systeminstruction", "instructions":
			err = f.blocks(value, 0)
		case "requests":
			err = f.batch(value, depth)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range chosen {
		if slices.Contains(gone, name) {
			return &Error{name}
		}
	}
	return nil
}

// batch looks at a list of requests.
func (f *filter) batch(v gjson.Result, depth int) error {
	for _, item := range each(v) {
		for key, value := range each(item) {
			if key == "params" || key == "body" || key == "request" {
				if err := f.request(value, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tools looks at a list of definitions, and returns the names by which a request can choose those that it has taken out.
func (f *filter) tools(v gjson.Result) (gone []string, err error) {
	if v.IsObject() {
		if kind, _, _ := serverTool(v, 0); kind != "" {
			return nil, &Error{kind}
		}
		return nil, nil
	}
	var kept []string
	left := ""
	for _, tool := range each(v) {
		kind, own, apart := serverTool(tool, 0)
		switch {
		case kind == "":
			kept = append(kept, tool.Raw)
		case !apart:
			return nil, &Error{kind}
		default:
			left, gone = kind, append(gone, own...)
			f.removed = append(f.removed, kind)
		}
	}
	if left == "" {
		return nil, nil
	}
	if len(kept) == 0 {
		return nil, &Error{left} // the request was for this alone
	}
	list := f.body[v.Index:][:len(v.Raw)]
	n := 1 + copy(list[1:], strings.Join(kept, ","))
	copy(list[n:len(list)-1], bytes.Repeat([]byte{' '}, len(list)))
	return gone, nil
}

// blocks looks at messages, or at pieces of their content.
func (f *filter) blocks(v gjson.Result, depth int) (err error) {
	if depth > deepest {
		return &Error{"content in too much other content"}
	}
	for key, value := range each(v) {
		switch key {
		case "":
			if v.IsArray() {
				err = f.blocks(value, depth+1)
			}
		case "content", "parts", "output", "functionresponse":
			err = f.blocks(value, depth+1)
		case "tools":
			_, err = f.tools(value)
		case "source", "filedata":
			err = f.source(value, depth+1)
		case "imageurl", "fileurl", "videourl":
			err = link(value, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// source looks at where a block's image, document or file comes from.
func (f *filter) source(v gjson.Result, depth int) (err error) {
	for key, value := range each(v) {
		switch key {
		case "url", "fileuri":
			err = link(value, depth)
		case "content":
			err = f.blocks(value, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link looks at the address of an image or file, or at an object that has one.
func link(v gjson.Result, depth int) error {
	if address := plainWord(strings.TrimSpace(v.Str)); address != "" && !strings.HasPrefix(address, "data:") || depth > deepest {
		return &Error{"the address of an image or file"}
	}
	for key, value := range each(v) {
		if key == "url" {
			if err := link(value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainWord is a name without what services do not tell apart: case, dashes and underscores.
func plainWord(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(strings.ToUpper(s)))
}

// deepestTools is how many groups of tools may be in one another.
const deepestTools = 8

// serverTool reports the tool that the service itself would run, by its type; empty when there is none. Own are the names
// by which a request can choose it. Apart means that the definition has nothing else.
func serverTool(tool gjson.Result, depth int) (kind string, own []string, apart bool) {
	if depth > deepestTools {
		return "a group of tools in too many others", nil, false
	}
	apart = true
	for key, value := range each(tool) {
		switch key {
		case "type":
			if runsThere(value.Str) {
				kind = value.Str
			}
		case "name", "serverlabel":
			own = append(own, value.Str)
		case "googlesearch", "googlesearchretrieval", "urlcontext", "codeexecution", "googlemaps", "enterprisewebsearch", "mcpservers":
			kind = key
		case "functiondeclarations":
			apart = false
		case "environment": // of a shell
			for key, value := range each(value) {
				if key == "type" && strings.HasPrefix(plainWord(value.Str), "container") {
					kind = "a shell in a container of the service"
				}
			}
		case "tools": // a namespace
			for _, nested := range each(value) {
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

// choice returns the names of tools that the request asks for. A choice of a server's tool is refused.
func choice(v gjson.Result) (names []string, err error) {
	if kind, _, _ := serverTool(v, 0); kind != "" {
		return nil, &Error{kind}
	}
	for key, value := range each(v) {
		if key == "name" {
			names = append(names, value.Str)
		}
	}
	return names, nil
}
