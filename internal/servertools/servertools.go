// Package servertools prevents a sandbox from reaching the internet through a model service.
//
// Services run some tools themselves: they search the web, fetch pages, call remote MCP servers, run code, and load images and
// files from addresses. Whoever can send a request to such a service can make it send anything anywhere, past every allow-list.
// [Filter] removes the definitions of such tools from requests, and rejects requests in which they cannot be removed. It knows
// the request formats of Anthropic's Messages, OpenAI's Responses and Chat Completions, Gemini, and Bedrock's Converse. Unknown fields
// pass, unknown tools and types of content do not.
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
	return e.Tool + " would have the model's service reach the internet from outside the sandbox"
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
		case "messages", "input", "contents", "content", "system", "systeminstruction", "instructions":
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

// blocks checks messages or parts of their content.
func (f *filter) blocks(v gjson.Result, depth int) (err error) {
	if depth > deepest {
		return &Error{"content in too much other content"}
	}
	for key, value := range members(v) {
		switch key {
		case "":
			if v.IsArray() {
				err = f.blocks(value, depth+1)
			}
		case "type":
			err = blockType(v, value)
		case "tool": // of Anthropic's tool_addition
			for key, definition := range members(value) {
				if kind, _, _ := serverTool(definition, 0); key == "definition" && kind != "" {
					err = &Error{kind}
				}
			}
		case "fileid":
			err = storedFile(value)
		case "content", "parts", "output", "functionresponse", "image", "document", "video", "audio", "toolresult":
			err = f.blocks(value, depth+1)
		case "tools":
			_, err = f.tools(value)
		case "source", "filedata", "file":
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

// blockType checks the type of a block. Services run tools that earlier answers called, and a request may invent such an answer.
func blockType(block, kind gjson.Result) error {
	word := plainWord(kind.Str)
	if word == "servertooluse" { // a search in the list of tools
		for key, value := range members(block) {
			if key == "name" && !strings.HasPrefix(plainWord(value.Str), "toolsearchtool") {
				return &Error{kind.Str + " of " + cmp.Or(value.Str, "a tool without a name")}
			}
		}
		return nil
	}
	if kind.Type != gjson.Null && !harmlessBlock().MatchString(word) {
		return &Error{cmp.Or(kind.Str, "content of an unknown type")}
	}
	return nil
}

// harmlessBlock matches the types of content with which the service reaches nothing outside the request.
var harmlessBlock = pattern.Lazy(`^(?:text|message|image|imageurl|document|file|searchresult|inputtext|inputimage|inputfile|inputaudio|` +
	`outputtext|outputaudio|refusal|thinking|redactedthinking|reasoning|reasoningtext|summarytext|connectortext|encryptedcontent|tooluse|toolresult|` +
	`toolreference|tooladdition|toolremoval|toolchange|toolsearchtoolresult|toolsearchtoolsearchresult|toolsearchtoolresulterror|` +
	`toolsearchcall|toolsearchoutput|additionaltools|function|functioncall|functioncalloutput|customtoolcall|customtoolcalloutput|` +
	`localshellcall|localshellcalloutput|shellcall|shellcalloutput|applypatchcall|applypatchcalloutput|computercall|` +
	`computercalloutput|computerscreenshot|agentmessage|compaction|compactionsummary|compactiontrigger|contextcompaction|` +
	`configurationupdate|fallback|midconvsystem|itemreference|ghostsnapshot)$`)

// storedFile refuses the name of a file that the account has stored at the service: other people may have put it there.
func storedFile(v gjson.Result) error {
	if v.Type == gjson.Null {
		return nil
	}
	return &Error{"a file stored at the service"}
}

// source checks the source of an image, document or file.
func (f *filter) source(v gjson.Result, depth int) (err error) {
	if depth > deepest {
		return &Error{"a source in too many others"}
	}
	for key, value := range members(v) {
		switch key {
		case "url", "fileuri":
			err = link(value, depth)
		case "s3location":
			err = f.source(value, depth+1)
		case "uri":
			err = link(value, depth)
		case "fileid":
			err = storedFile(value)
		case "content":
			err = f.blocks(value, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link checks the address of an image or file, or an object with that address.
func link(v gjson.Result, depth int) error {
	if address := plainWord(strings.TrimSpace(v.Str)); address != "" && !strings.HasPrefix(address, "data:") || depth > deepest {
		return &Error{"the address of an image or file"}
	}
	for key, value := range members(v) {
		if key == "url" {
			if err := link(value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
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
