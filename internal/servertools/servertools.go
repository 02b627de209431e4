// Package servertools prevents a sandbox from reaching the internet through a model service.
//
// Services run some tools themselves: they search the web, fetch pages, call remote MCP servers, run code, and load images and
// files from addresses. Whoever can send a request to such a service can make it send anything anywhere, past every allow-list.
// [Filter] removes the definitions of such tools from requests, and rejects requests in which they cannot be removed. It knows
// the request formats of Anthropic's Messages, OpenAI's Responses and Chat Completions, Gemini, and Bedrock's Converse. Unknown fields
// pass, unknown tools do not, and unknown types of content only if they carry nothing but text.
//
// It also rejects what names content that the account has stored at the service: earlier answers, conversations, prompts, files,
// caches. Other people may have put it there, and its tokens cost money although they are not in the request.
//
// Package sandboxes/egress calls it.
package servertools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// Error is the rejection of a request.
type Error struct {
	Tool string // the offending tool in the request's words, which is untrusted text; empty: the body is not JSON
}

func (e *Error) Error() string {
	if e.Tool == "" {
		return "the request's body is not JSON in UTF-8"
	}
	return e.Tool + " would have the model's service reach what is outside the sandbox"
}

// Answer returns the body of a rejection. It has the error fields of Anthropic, OpenAI and Google.
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

// Filter removes the tools that the service itself would run from a request's body, in place, and returns their names. It
// overwrites them with spaces. If it returns an *Error, the request must not be sent.
func Filter(body []byte) (removed []string, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil // empty body
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, &Error{} // a service might understand what this parser does not
	}
	f := filter{body: body}
	err = f.request(gjson.ParseBytes(body), 0)
	return f.removed, err
}

type filter struct {
	body    []byte
	removed []string
}

// members yields the members of an object, with normalised keys and including duplicate keys, or the elements of an array with
// empty keys. It yields nothing for other values.
func members(v gjson.Result) iter.Seq2[string, gjson.Result] {
	return func(yield func(string, gjson.Result) bool) {
		if v.IsObject() || v.IsArray() {
			v.ForEach(func(key, value gjson.Result) bool { return yield(plainWord(key.Str), value) })
		}
	}
}

// deepest is the maximum nesting depth. Each level is parsed once more, so the limit keeps the time linear in the request's size.
const deepest = 32

// request checks a request.
func (f *filter) request(v gjson.Result, depth int) error {
	if depth > deepest {
		return &Error{"a request in too many others"}
	}
	var chosen, gone []string
	for key, value := range members(v) {
		var names []string
		var err error
		switch key {
		case "tools":
			names, err = f.tools(value)
			gone = append(gone, names...)
		case "toolchoice":
			names, err = selectedTools(value)
			chosen = append(chosen, names...)
		case "toolconfig": // of Bedrock, and of Gemini without tools
			err = f.toolConfig(value)
		case "additionalmodelrequestfields": // of Bedrock, for the model's own service
			err = f.request(value, depth+1)
		case "extrabody", "params": // some gateways merge them into the request
			err = f.request(value, depth+1)
		case "input":
			if err = reference(value); err == nil {
				err = f.blocks(value, 0)
			}
		case "messages", "contents", "content", "system", "systeminstruction", "instructions":
			err = f.blocks(value, 0)
		case "requests":
			err = f.batch(value, depth)
		default:
			err = serverField(key, value)
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

// serverField rejects a field that makes the service search, call servers, or use what is stored there. Other fields only set how it
// answers.
func serverField(key string, value gjson.Result) error {
	used, name := false, key
	switch key {
	case "mcpservers": // of Anthropic
		used, name = value.Type != gjson.Null && len(value.Array()) > 0, "mcp_servers"
	case "plugins", "connectors": // of OpenRouter and Cohere
		used = strings.Contains(value.Raw, "{")
	case "datasources": // of Azure
		used, name = strings.Contains(value.Raw, "{"), "data_sources"
	case "container": // in which the service runs code and skills
		used = value.Type != gjson.Null
	case "websearchoptions": // of OpenAI
		used, name = value.IsObject(), "web_search_options"
	case "searchparameters": // of xAI
		used, name = value.IsObject(), "search_parameters"
	case "enablesearch": // of Qwen
		used, name = value.Type != gjson.Null && value.Type != gjson.False, "enable_search"
	case "prompt": // of OpenAI; it may have tools
		used, name = value.IsObject(), "a stored prompt"
	case "previousresponseid":
		used, name = value.Type != gjson.Null, "previous_response_id"
	case "conversation":
		used = value.Type != gjson.Null
	case "cachedcontent": // of Gemini
		used, name = value.Type != gjson.Null, "cached_content"
	case "inputfileid": // of a batch
		return storedFile(value)
	}
	if !used {
		return nil
	}
	return &Error{name}
}

// toolConfig checks Bedrock's list of tools.
func (f *filter) toolConfig(v gjson.Result) error {
	for key, value := range members(v) {
		if key == "tools" {
			if _, err := f.tools(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch checks a list of requests.
func (f *filter) batch(v gjson.Result, depth int) error {
	for _, item := range members(v) {
		for key, value := range members(item) {
			if key == "params" || key == "body" || key == "request" {
				if err := f.request(value, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tools checks a list of tool definitions, removes those that the service would run, and returns the names by which the
// request could choose the removed ones.
func (f *filter) tools(v gjson.Result) (gone []string, err error) {
	if v.IsObject() {
		if kind, _, _ := serverTool(v, 0); kind != "" {
			return nil, &Error{kind}
		}
		return nil, nil
	}
	var kept []string
	left := ""
	for _, tool := range members(v) {
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
		return nil, &Error{left} // without these tools the request makes no sense
	}
	list := f.body[v.Index:][:len(v.Raw)]
	n := 1 + copy(list[1:], strings.Join(kept, ","))
	copy(list[n:len(list)-1], bytes.Repeat([]byte{' '}, len(list)))
	return gone, nil
}

// plainWord normalises a name: services ignore case, dashes and underscores.
func plainWord(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(strings.ToUpper(s)))
}

// deepestTools is the maximum nesting depth of groups of tools.
const deepestTools = 8

// serverTool returns the type of the tool that the service itself would run, or an empty kind. own are the names by which a
// request can choose it. apart means that the definition can be removed as a whole: it defines nothing else.
func serverTool(tool gjson.Result, depth int) (kind string, own []string, apart bool) {
	if depth > deepestTools {
		return "a group of tools in too many others", nil, false
	}
	apart = true
	typed, feature := false, ""
	for key, value := range members(tool) {
		switch key {
		case "type":
			typed = true
			if value.Type != gjson.Null && !clientSide().MatchString(plainWord(value.Str)) {
				kind = cmp.Or(value.Str, "a tool of an unknown type")
			}
		case "name", "serverlabel":
			typed = true
			own = append(own, value.Str)
		case "googlesearch", "googlesearchretrieval", "urlcontext", "codeexecution", "googlemaps", "enterprisewebsearch", "mcpservers":
			kind = key
		case "functiondeclarations", "toolspec":
			apart = false
		case "computeruse", "cachepoint":
		case "environment": // of a shell tool
			for key, value := range members(value) {
				if key == "type" && strings.HasPrefix(plainWord(value.Str), "container") {
					kind = "a shell in a container of the service"
				}
			}
		case "tools": // a namespace of tools
			for _, nested := range members(value) {
				if k, _, _ := serverTool(nested, depth+1); k != "" {
					return k, nil, false
				}
			}
		default:
			feature = key
		}
	}
	if kind == "" && !typed {
		kind = feature // of Gemini, whose tools have no type
	}
	return kind, own, apart
}

// clientSide matches the types of tools that the agent itself runs, or that reach nothing outside the request, and of choices between
// tools. A list of the other types would miss new ones.
var clientSide = pattern.Lazy(`^(?:function|custom|namespace|toolsearch|toolsearchtool(?:regex|bm25)(?:20\d{6})?|shell|localshell|applypatch|` +
	`computerusepreview|(?:bash|texteditor|computer|memory)(?:20\d{6})?|tool|any|auto|none|required|validated|allowedtools)$`)

// selectedTools returns the names of the tools that the request selects. It rejects the selection of a tool that the service runs.
func selectedTools(v gjson.Result) (names []string, err error) {
	if kind, _, _ := serverTool(v, 0); kind != "" {
		return nil, &Error{kind}
	}
	for key, value := range members(v) {
		if key == "name" {
			names = append(names, value.Str)
		}
	}
	return names, nil
}
