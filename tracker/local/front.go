package local

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/ralph-pool/ralph/internal/yamlparse"
)

// field is one key of the front matter.
type field struct {
	name  string
	value ast.Node
	line  int // in the file, from 1
	key   int // offset in the file; -1 when unknown
	colon int // offset in the file; -1 when unknown
}

// frontMatter is the parsed YAML, with the positions of its nodes in the file.
type frontMatter struct {
	doc    document
	fields []field
	flow   bool  // written in flow style: {key: value}
	lines  []int // offset in the file of each line of the YAML
}

// parseFront parses the YAML of a document. A document without front matter has no fields.
func parseFront(d document) (f frontMatter, err error) {
	f.doc = d
	src := d.raw[d.front:d.frontEnd]
	if len(bytes.TrimSpace(src)) == 0 {
		return f, nil
	}
	for at := d.front; at < d.frontEnd; at += len(d.line(at)) {
		f.lines = append(f.lines, at)
	}
	// The parser miscounts lines with Windows line ends.
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	if i := bytes.IndexByte(src, '\r'); i >= 0 {
		return f, errorAt(1+lineOf(src, i), "stray carriage return; use one kind of line end")
	}
	file, err := yamlparse.Parse(src)
	if wrong, ok := errors.AsType[*yamlparse.Error](err); ok {
		return f, errorAt(1+wrong.Line, "front matter is not YAML: %s; correct the line", wrong.Text)
	}
	if len(file.Docs) > 1 {
		return f, errorAt(2, "front matter has more than one YAML document; keep one")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return f, nil
	}
	var pairs []*ast.MappingValueNode
	switch body := file.Docs[0].Body.(type) {
	case *ast.MappingNode:
		pairs, f.flow = body.Values, body.IsFlowStyle
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{body}
	case *ast.CommentGroupNode:
	default:
		return f, errorAt(2, "front matter is not keys and values; write lines like title: Fix the login")
	}
	for _, p := range pairs {
		f.fields = append(f.fields, f.field(p))
	}
	return f, nil
}

func (f frontMatter) field(p *ast.MappingValueNode) field {
	v := field{value: p.Value, key: -1, colon: -1, line: 2}
	tok := p.Key.GetToken()
	if tok == nil {
		return v
	}
	v.name = tok.Value
	if _, ok := p.Key.(*ast.MappingKeyNode); ok {
		v.name = "" // "? key" is never a key of ralph's
		return v
	}
	v.line = 1 + tok.Position.Line
	if at := f.offset(tok); at >= 0 && (bytes.HasPrefix(f.doc.raw[at:], []byte(tok.Value)) || quoted(f.doc.raw[at])) {
		v.key = at
	}
	if at := f.offset(p.Start); at >= 0 && f.doc.raw[at] == ':' {
		v.colon = at
	}
	return v
}

// offset returns the start of a token in the file, or -1. Lines and columns count runes from 1; the tokens' own offsets are not
// reliable.
func (f frontMatter) offset(t *token.Token) int {
	if t == nil || t.Position == nil || t.Position.Line < 1 || t.Position.Line > len(f.lines) {
		return -1
	}
	at := f.lines[t.Position.Line-1]
	for range t.Position.Column - 1 {
		if at >= f.doc.frontEnd || f.doc.raw[at] == '\n' {
			return -1
		}
		_, size := utf8.DecodeRune(f.doc.raw[at:])
		at += size
	}
	if at >= f.doc.frontEnd {
		return -1
	}
	return at
}

func (f frontMatter) find(name string) (field, bool) {
	for _, v := range f.fields {
		if v.name == name {
			return v, true
		}
	}
	return field{}, false
}

// otherFields returns the fields except labels and state, in order, to compare two versions of a file.
func (f frontMatter) otherFields() []string {
	var all []string
	for _, v := range f.fields {
		if v.name != "labels" && v.name != "state" {
			all = append(all, fmt.Sprint(v.name, ": ", v.value))
		}
	}
	return all
}

func quoted(c byte) bool { return c == '"' || c == '\'' }

// scalar returns a scalar as it was written, without quotes; null is "" and ok.
func scalar(n ast.Node) (text string, ok bool) {
	switch v := n.(type) {
	case nil, *ast.NullNode:
		return "", true
	case *ast.AnchorNode:
		return scalar(v.Value)
	case *ast.TagNode:
		return scalar(v.Value)
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(n.GetToken().Value), true
	}
	return "", false
}

// sequence returns the items of a list.
func sequence(n ast.Node) ([]ast.Node, bool) {
	switch v := n.(type) {
	case *ast.AnchorNode:
		return sequence(v.Value)
	case *ast.TagNode:
		return sequence(v.Value)
	case *ast.SequenceNode:
		return v.Values, true
	}
	return nil, false
}
