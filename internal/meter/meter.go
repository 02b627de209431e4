// Package meter reads the token usage that a model service states in its answer, while the answer passes a proxy. It knows
// the shapes of Anthropic (also as Bedrock and Vertex serve it), OpenAI (responses and chat completions), Gemini and
// Bedrock's Converse, as one JSON document, as server-sent events and as AWS event stream.
//
// A proxy of the egress calls it. An Answer is not safe for concurrent use; separate answers are independent. The body is
// hostile data: what is malformed or too long is skipped, and what is kept in memory is bounded.
package meter

import (
	"bytes"
	"cmp"
	"mime"
	"strings"

	"github.com/ralph-pool/ralph/agents"
)

// maxPart is the largest part of a body that is read: an event, a frame, or a member or element of a JSON document.
const maxPart = 8 << 20

// Answer counts the tokens of one response.
type Answer struct {
	decode  func(p []byte) // nil until the first byte that is not white space
	begun   stated         // by an event that begins an answer: the output is still to come
	stated  stated
	size    int64  // bytes so far
	reads   int    // of what may state usage
	model   string // as the request's path names it
	binary  bool
	skipped bool

	part  part // of a document or a frame; the line of an event stream
	data  part // of one server-sent event
	lines int  // of data

	depth           int
	object          bool  // the outermost value of the document is an object
	text, backslash bool  // inside a string of the document; behind its backslash
	drop            int64 // bytes of a frame that is too long
}

// New returns a counter for one response. contentType is the response's header; path the request's URL path. The body has
// to be written as it is without a Content-Encoding.
func New(contentType, path string) *Answer {
	kind, _, _ := mime.ParseMediaType(contentType)
	return &Answer{model: modelOf(path), binary: kind == "application/vnd.amazon.eventstream"}
}

// Write gets the body piece by piece, in any cuts. It never fails, never blocks, and holds bounded memory.
func (a *Answer) Write(p []byte) (int, error) {
	n := len(p)
	a.size += int64(n)
	if a.decode == nil {
		if p = bytes.TrimLeft(p, " \t\r\n"); len(p) == 0 {
			return n, nil
		}
		a.decode = a.decoder(p[0])
	}
	a.decode(p)
	return n, nil
}

// decoder returns the reader of a body. Services mix up the types of text, but the first byte tells them apart.
func (a *Answer) decoder(first byte) func([]byte) {
	switch {
	case a.binary:
		return a.frames
	case first == '{' || first == '[':
		return a.document
	default:
		return a.events
	}
}

// Reads grows when what Usage returns may have changed.
func (a *Answer) Reads() int { return a.reads }

// Usage is what the answer has stated so far, and the model it named; else the one that the request's path names. seen is
// false when it stated none. A count that was stated more than once is the largest. Usage reads nothing: it is cheap.
func (a *Answer) Usage() (u agents.Usage, model string, seen bool) {
	u, seen = a.stated.usage()
	begun, first := a.begun.usage()
	return u.Larger(begun), cmp.Or(string(a.begun.Model), string(a.stated.Model), a.model), seen || first
}

// Terms are what an answer's price depends on besides its model and tokens.
type Terms struct {
	HourWrites int64  // tokens written to the cache for an hour, part of CacheWrite
	Tier       string // the service tier in lower case, safe to print; empty: none is named
}

// Terms returns the terms that the answer has stated so far.
func (a *Answer) Terms() Terms {
	t, begun := a.stated.terms(), a.begun.terms()
	t.HourWrites = max(t.HourWrites, begun.HourWrites)
	t.Tier = cmp.Or(t.Tier, begun.Tier)
	return t
}

// BytesPerToken is what an estimate takes for a token. English text and code have about four bytes in each, and the frame
// of an event around a few of them only makes the estimate larger.
const BytesPerToken = 4

// Estimated is the usage of an answer that is over, where request is the size of its request in bytes: what it has not
// stated, as when it was cut off, is estimated.
func (a *Answer) Estimated(request int64) (u agents.Usage, model string) {
	u, model, seen := a.Usage()
	if _, final := a.stated.usage(); final {
		return u, model
	}
	if !seen {
		u.Input = request / BytesPerToken
		u.Estimated = u.Input
	}
	if output := a.size / BytesPerToken; output > u.Output {
		u.Output, u.Estimated = output, u.Estimated+output
	}
	return u, model
}

// Free reports a request that uses no tokens: it only counts them.
func Free(path string) bool {
	return strings.HasSuffix(path, "/count_tokens") || strings.HasSuffix(path, ":countTokens")
}

// Skipped reports whether a part of the answer was too long, or not of its format, so that usage may have been missed.
func (a *Answer) Skipped() bool { return a.skipped }

// modelOf returns the model that a request's path names: .../model/MODEL/invoke of Bedrock, .../models/MODEL:generateContent
// of Gemini and Vertex; "" for others.
func modelOf(path string) string {
	name := ""
	if _, rest, ok := strings.Cut(path, "/model/"); ok {
		name = rest[:max(strings.LastIndexByte(rest, '/'), 0)]
	} else if i := strings.LastIndex(path, "/models/"); i >= 0 {
		rest := path[i+len("/models/"):]
		name = rest[:max(strings.LastIndexByte(rest, ':'), 0)]
	}
	if !isModel(name) {
		return ""
	}
	return name
}

// isModel reports whether a text can be a model's name: short, and safe to print.
func isModel(name string) bool {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return false
		}
	}
	return name != "" && len(name) <= 256
}

// part is a piece of the body that is collected until it is whole.
type part struct {
	bytes []byte
	over  bool // it was longer than maxPart; the bytes are gone
}

func (p *part) add(b []byte) {
	if p.over || len(p.bytes)+len(b) > maxPart {
		p.over, p.bytes = true, nil
		return
	}
	p.bytes = append(p.bytes, b...)
}

// reset begins a new part. A large buffer is freed: answers may be slow and many.
func (p *part) reset() {
	if cap(p.bytes) > 64<<10 {
		p.bytes = nil
	}
	p.bytes, p.over = p.bytes[:0], false
}
