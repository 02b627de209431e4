// Package meter reads the token usage in the response of a model service while the response passes through a proxy. It knows
// the formats of Anthropic (also through Bedrock and Vertex), OpenAI (responses and chat completions), Gemini and Bedrock's
// Converse, as a JSON document, server-sent events or an AWS event stream.
//
// An Answer is not safe for concurrent use; separate ones are independent. The body is hostile data: malformed or overlong
// parts are skipped, and memory is bounded.
package meter

import (
	"bytes"
	"cmp"
	"mime"
	"strings"

	"github.com/ralph-pool/ralph/agents"
)

// maxPart is the maximum size in bytes of a decoded part of a body: an event, a frame, or a member or element of a JSON document.
const maxPart = 8 << 20

// Answer counts the tokens of one response.
type Answer struct {
	decode     func(p []byte) // nil until the first byte that is not white space
	startUsage stated         // from an event that starts an answer: the output is still to come
	finalUsage stated
	size       int64  // bytes received so far
	reads      int    // number of decoded parts that may contain usage
	model      string // from the request's path
	binary     bool
	skipped    bool

	part  part // current part of a document or frame, or line of an event stream
	data  part // data of one server-sent event
	lines int  // number of lines in data

	depth           int
	object          bool  // the outermost value of the document is an object
	text, backslash bool  // inside a string of the document; after a backslash in it
	drop            int64 // bytes to skip of an overlong frame
}

// New returns a counter for one response. contentType is the response's header, path the request's URL path. The body must
// be written to it without content encoding.
func New(contentType, path string) *Answer {
	kind, _, _ := mime.ParseMediaType(contentType)
	return &Answer{model: modelOf(path), binary: kind == "application/vnd.amazon.eventstream"}
}

// Write takes the next piece of the body; pieces may be cut anywhere. It never fails, never blocks, and uses bounded memory.
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

// decoder returns the reader for a body. Services confuse the content types of text, but the first byte distinguishes them.
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

// Reads returns a counter that grows whenever the result of Usage may have changed.
func (a *Answer) Reads() int { return a.reads }

// Usage returns the usage stated so far and the model that the answer names, or else the model in the request's path. seen is false
// if no usage was stated. Of a count that was stated more than once it returns the largest. It does no decoding, so it is cheap.
func (a *Answer) Usage() (u agents.Usage, model string, seen bool) {
	u, seen = a.finalUsage.usage()
	begun, first := a.startUsage.usage()
	return u.Larger(begun), cmp.Or(string(a.startUsage.Model), string(a.finalUsage.Model), a.model), seen || first
}

// Finished reports whether the answer has stated its whole usage, which services do at its end.
func (a *Answer) Finished() bool {
	_, final := a.finalUsage.usage()
	return final
}

// Terms are the facts besides model and tokens on which the price of an answer depends.
type Terms struct {
	HourWrites int64  // tokens written to the cache for one hour; included in CacheWrite
	Tier       string // service tier in lower case, safe to print; empty: not stated
	Region     string // in which the model ran, in lower case, safe to print; empty: any
}

// Terms returns the terms that the answer has stated so far.
func (a *Answer) Terms() Terms {
	t, begun := a.finalUsage.terms(), a.startUsage.terms()
	t.HourWrites = max(t.HourWrites, begun.HourWrites)
	t.Tier, t.Region = cmp.Or(t.Tier, begun.Tier), cmp.Or(t.Region, begun.Region)
	return t
}

// BytesPerToken is the assumed size of a token in estimates. English text and code have about four bytes per token. The
// framing of events only makes the estimate larger.
const BytesPerToken = 4

// Estimated returns the usage of a finished answer to a request. It estimates what the answer has not stated.
// complete means that the service itself has ended the answer: if that has begun to state its usage, no more was generated than
// arrived. Otherwise the service may have gone on, or thought without saying it.
func (a *Answer) Estimated(asked Request, complete bool) (u agents.Usage, model string) {
	u, model, seen := a.Usage()
	if a.Finished() {
		return u, model
	}
	output := a.size / BytesPerToken
	if !seen || asked.Compacts { // the end would state what a summary has cost
		u.Estimated = max(asked.Most.Input-u.Input-u.CacheRead-u.CacheWrite, 0)
		u.Input += u.Estimated
	}
	if !seen || !complete || asked.Compacts {
		output = max(output, asked.Most.Output)
	}
	if output > u.Output {
		u.Output, u.Estimated = output, u.Estimated+output
	}
	return u, model
}

// Free reports whether requests to the path use no tokens because they only count them.
func Free(path string) bool {
	return strings.HasSuffix(path, "/count_tokens") || strings.HasSuffix(path, ":countTokens")
}

// modelOf returns the model in a request's path: .../model/MODEL/invoke for Bedrock, .../models/MODEL:generateContent for
// Gemini and Vertex, "" for others.
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

// isModel reports whether the text can be the name of a model: short and safe to print.
func isModel(name string) bool {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return false
		}
	}
	return name != "" && len(name) <= 256
}

// part collects the bytes of one part of the body.
type part struct {
	bytes    []byte
	overlong bool // longer than maxPart; the bytes were dropped
}

func (p *part) add(b []byte) {
	if p.overlong || len(p.bytes)+len(b) > maxPart {
		p.overlong, p.bytes = true, nil
		return
	}
	p.bytes = append(p.bytes, b...)
}

// reset starts a new part. It frees a large buffer, because there may be many slow answers.
func (p *part) reset() {
	if cap(p.bytes) > 64<<10 {
		p.bytes = nil
	}
	p.bytes, p.overlong = p.bytes[:0], false
}
