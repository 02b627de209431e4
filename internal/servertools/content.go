package servertools

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ralph-pool/ralph/internal/pattern"
)

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
		case "content", "summary", "parts", "output", "functionresponse", "image", "document", "video", "audio", "toolresult":
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
	if kind.Type != gjson.Null && !harmlessBlock().MatchString(word) && (actingBlock().MatchString(word) || !onlyText(block)) {
		return &Error{cmp.Or(kind.Str, "content of an unknown type")}
	}
	return nil
}

// actingBlock matches types of content that may stand for what the service does itself, or for what is stored there.
var actingBlock = pattern.Lazy(`^$|mcp|server|web|url|search|fetch|browse|code|container|call|use|result|stored|upload|file|reference|item|prompt`)

// onlyText reports whether a block has only fields that can name neither an address nor anything stored: no identifier, either.
func onlyText(block gjson.Result) bool {
	for key, value := range members(block) {
		switch key {
		case "type", "text", "thinking", "signature", "encryptedcontent", "role", "status", "phase":
			if value.Type == gjson.JSON {
				return false
			}
		case "content", "summary":
			for nested, part := range members(value) {
				if nested != "" || !value.IsArray() || part.IsArray() || part.IsObject() && !hasAny(part, "type") {
					return false
				}
			}
		case "cachecontrol":
		default:
			return false
		}
	}
	return true
}

// reference rejects an item with just an identifier: the type of a reference to a stored item may be left out.
func reference(input gjson.Result) error {
	for _, item := range members(input) {
		if item.IsObject() && hasAny(item, "id") && !hasAny(item, "type", "role") {
			return &Error{"an item without a type"}
		}
	}
	return nil
}

// hasAny reports whether an object has a member of one of these names with a value.
func hasAny(v gjson.Result, names ...string) bool {
	for key, value := range members(v) {
		if slices.Contains(names, key) && value.Type != gjson.Null {
			return true
		}
	}
	return false
}

// harmlessBlock matches the types of content with which the service reaches nothing outside the request.
var harmlessBlock = pattern.Lazy(`^(?:text|message|image|imageurl|document|file|searchresult|inputtext|inputimage|inputfile|inputaudio|` +
	`outputtext|outputaudio|refusal|thinking|redactedthinking|reasoning|reasoningtext|summarytext|connectortext|encryptedcontent|tooluse|toolresult|` +
	`toolreference|tooladdition|toolremoval|toolchange|toolsearchtoolresult|toolsearchtoolsearchresult|toolsearchtoolresulterror|` +
	`toolsearchcall|toolsearchoutput|additionaltools|function|functioncall|functioncalloutput|customtoolcall|customtoolcalloutput|` +
	`localshellcall|localshellcalloutput|shellcall|shellcalloutput|applypatchcall|applypatchcalloutput|computercall|` +
	`computercalloutput|computerscreenshot|agentmessage|compaction|compactionsummary|compactiontrigger|contextcompaction|` +
	`configurationupdate|fallback|midconvsystem|ghostsnapshot)$`)

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
