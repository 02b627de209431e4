package servertools

import (
	"encoding/json"
	"strings"
)

// place is what a value of a request is.
type place int

const (
	unknown place = iota // nothing in it is looked at
	root                 // a request
	tools                // list of definitions
	tool                 // one of them
	choice               // of a tool
	remote               // MCP servers
	search               // options of a search
	blocks               // messages, or pieces of their content
	block
	source // of a block's image or document
	link   // an address, or an object that has one
	file   // reference to a file
	batch  // of requests
	item   // one of these, with its request
)

func (p place) String() string {
	if p == remote {
		return "mcp_servers"
	}
	return "web_search_options"
}

// member is the place of an object's member.
func (p place) member(key string) place {
	switch p {
	case root:
		switch key {
		case "tools":
			return tools
		case "toolchoice":
			return choice
		case "mcpservers":
			return remote
		case "websearchoptions":
			return search
		case "messages", "input", "contents", "content", "system", "systeminstruction", "instructions":
			return blocks
		case "requests":
			return batch
		}
	case block:
		switch key {
		case "content", "parts", "output", "functionresponse":
			return blocks
		case "tools":
			return tools
		case "source":
			return source
		case "imageurl", "fileurl", "videourl":
			return link
		case "filedata":
			return file
		}
	case source:
		switch key {
		case "url":
			return link
		case "content":
			return blocks
		}
	case link:
		if key == "url" {
			return link
		}
	case file:
		if key == "fileuri" {
			return link
		}
	case item:
		if key == "params" || key == "body" || key == "request" {
			return root
		}
	}
	return unknown
}

// element is the place of an array's element.
func (p place) element() place {
	switch p {
	case tools:
		return tool
	case blocks:
		return block
	case batch:
		return item
	case remote:
		return remote
	}
	return unknown
}

// expect is what comes next.
type expect int

const (
	value expect = iota
	key
	colon
	comma
	nothing
)

// mode is what the scanner is in.
type mode int

const (
	between mode = iota
	inString
	literal
)

// frame is an object or array that is open.
type frame struct {
	array bool
	place place
	next  expect
	fresh bool   // it is empty so far
	key   string // plain

	kept            int      // tools: definitions that stay
	left            string   // tools: one that does not
	removed, choice []string // of a request
}

const (
	deepest  = 500     // objects and arrays in one another
	longWord = 512     // bytes of a key, or of an address, that are looked at
	mostHeld = 1 << 20 // bytes of one definition
)

// scan reads JSON byte by byte, and strictly: what it does not understand, a service might.
type scan struct {
	stack []frame
	next  expect // outside of everything
	mode  mode

	isKey   bool   // the string is one
	isLink  bool   // the string is an address
	word    []byte // its bytes, without the quotes
	keep    bool   // the present byte or escape is added to word
	escapes bool   // the last byte was a backslash
	escaped int    // bytes of the present escape that are to come

	holding   bool
	held      []byte
	holds     place
	holdDepth int
}

func (s *scan) top() *frame { return &s.stack[len(s.stack)-1] }

func (s *scan) hold() { s.holding, s.held = true, s.held[:0] }

// put passes a byte on.
func (f *filter) put(c byte) error {
	if !f.holding {
		f.out = append(f.out, c)
		return nil
	}
	if len(f.held) >= mostHeld {
		return &Error{"a tool's definition of more than 1 MiB"}
	}
	f.held = append(f.held, c)
	return nil
}

// step takes a byte.
func (f *filter) step(c byte) error {
	switch f.mode {
	case inString:
		return f.inString(c)
	case literal:
		if isLiteral(c) {
			return f.put(c)
		}
		f.mode = between
		if err := f.ended(); err != nil {
			return err
		}
	case between:
	}
	if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
		return f.put(c)
	}
	want := f.next
	if len(f.stack) > 0 {
		want = f.top().next
	}
	switch {
	case (c == '}' || c == ']') && len(f.stack) > 0:
		return f.close(c, want)
	case want == value:
		return f.value(c)
	case want == key && c == '"':
		f.top().fresh = false
		f.quote(true, false)
		return f.put(c)
	case want == colon && c == ':':
		f.top().next = value
		return f.put(c)
	case want == comma && c == ',':
		return f.comma(c)
	}
	return &Error{}
}

// skip passes on what cannot matter, most of a request: text up to the next quote or escape.
func (f *filter) skip(b []byte) (rest []byte) {
	if f.mode != inString || f.isKey || f.isLink || f.escaped > 0 || f.holding {
		return b
	}
	n := 0
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' {
		n++
	}
	f.out = append(f.out, b[:n]...)
	return b[n:]
}

func (f *filter) comma(c byte) error {
	t := f.top()
	t.next = value
	if !t.array {
		t.next = key
	}
	if t.array && t.place == tools {
		f.hold() // it goes with the definition that comes
		f.holds, f.holdDepth = tool, len(f.stack)
	}
	return f.put(c)
}

func isLiteral(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// value begins a value.
func (f *filter) value(c byte) error {
	p := root
	if len(f.stack) > 0 {
		t := f.top()
		t.fresh = false
		if t.array {
			p = t.place.element()
		} else {
			p = t.place.member(t.key)
		}
	}
	if err := f.begin(p, c); err != nil {
		return err
	}
	switch {
	case c == '{' || c == '[':
		if len(f.stack) >= deepest {
			return &Error{}
		}
		if err := f.put(c); err != nil {
			return err
		}
		f.stack = append(f.stack, frame{array: c == '[', place: p.within(c == '['), next: value, fresh: true})
		if c == '{' {
			f.top().next = key
		}
		return nil
	case c == '"':
		f.quote(false, p == link)
		return f.put(c)
	case isLiteral(c):
		f.mode = literal
		return f.put(c)
	}
	return &Error{}
}

// within is the place of an object or array as what is in it sees it.
func (p place) within(array bool) place {
	switch {
	case p == tool || p == choice || p == search:
		return unknown // it is looked at as a whole
	case p == tools && !array:
		return unknown
	case p == blocks && !array:
		return block
	case array && p != tools && p != blocks && p != batch && p != remote:
		return unknown
	}
	return p
}

// close ends an object or array.
func (f *filter) close(c byte, want expect) error {
	t := f.top()
	if t.array != (c == ']') || want != comma && !t.fresh {
		return &Error{}
	}
	was := *t
	if err := f.closed(&was); err != nil {
		return err
	}
	f.stack = f.stack[:len(f.stack)-1]
	if err := f.put(c); err != nil {
		return err
	}
	return f.ended()
}

// quote begins a string.
func (f *filter) quote(isKey, isLink bool) {
	f.mode, f.isKey, f.isLink, f.word, f.escaped = inString, isKey, isLink, f.word[:0], 0
}

func (f *filter) inString(c byte) error {
	if err := f.put(c); err != nil {
		return err
	}
	switch {
	case c < ' ':
		return &Error{}
	case f.escaped > 0:
		f.escaped--
		if f.escapes && c == 'u' {
			f.escaped = 4
		}
		f.escapes = false
	case c == '"':
		f.mode = between
		return f.stringEnded()
	default:
		f.escapes = c == '\\'
		if f.escapes {
			f.escaped = 1
		}
		f.keep = (f.isKey || f.isLink) && len(f.word) < longWord // of an escape all or nothing
	}
	if f.keep {
		f.word = append(f.word, c)
	}
	return nil
}

func (f *filter) stringEnded() error {
	if !f.isKey && !f.isLink {
		return f.ended()
	}
	var word string
	if json.Unmarshal([]byte(`"`+string(f.word)+`"`), &word) != nil {
		return &Error{}
	}
	if f.isKey {
		f.top().key, f.top().next = plainWord(strings.ToValidUTF8(word, "")), colon
		return nil
	}
	if err := f.linked(word); err != nil {
		return err
	}
	return f.ended()
}
