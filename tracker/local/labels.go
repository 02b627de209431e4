package local

import (
	"bytes"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// addLabel adds a label after the last one, in the style of the list. A text with commas becomes a list.
func addLabel(f file, label string) ([]byte, error) {
	v, ok := f.front.find("labels")
	if !ok {
		return f.insertField("labels", formatList([]string{label}))
	}
	switch n := v.value.(type) {
	case *ast.NullNode:
		return f.fillNull(v, formatList([]string{label}))
	case *ast.SequenceNode:
		if n.IsFlowStyle {
			return f.addFlow(n, label)
		}
		return f.addBlock(n, label)
	}
	return f.replaceWithList(v, append(slices.Clip(f.labels), label))
}

// removeLabel removes the i-th label and keeps a comment beside it.
func removeLabel(f file, i int) ([]byte, error) {
	v, ok := f.front.find("labels")
	if !ok {
		return nil, f.uneditableError("labels")
	}
	seq, isList := v.value.(*ast.SequenceNode)
	if !isList {
		return f.replaceWithList(v, slices.Delete(slices.Clone(f.labels), i, i+1))
	}
	spans, ok := f.labelSpans(seq)
	if !ok || i >= len(spans) {
		return nil, f.uneditableError("labels")
	}
	if seq.IsFlowStyle {
		return f.removeFlow(seq, spans, i)
	}
	return f.removeBlock(spans[i])
}

// labelSpans returns the positions of all entries that readHeader counts as labels, in order.
func (f file) labelSpans(n *ast.SequenceNode) ([]span, bool) {
	var all []span
	for _, v := range n.Values {
		if text, ok := scalar(v); ok && strings.TrimSpace(text) == "" {
			continue
		}
		s, ok := f.span(v)
		if !ok {
			return nil, false
		}
		all = append(all, s)
	}
	return all, true
}

func (f file) addFlow(n *ast.SequenceNode, label string) ([]byte, error) {
	open, end := f.front.offset(n.Start), f.front.offset(n.End)
	raw := f.doc.raw
	spans, ok := f.labelSpans(n)
	if !ok || open < 0 || end < 0 || raw[open] != '[' || raw[end] != ']' || len(spans) != len(n.Values) {
		return nil, f.uneditableError("labels")
	}
	if len(spans) == 0 {
		return splice(raw, open+1, open+1, formatItem(label)), nil
	}
	last := spans[len(spans)-1].end
	return splice(raw, last, last, ", "+formatItem(label)), nil
}

func (f file) removeFlow(n *ast.SequenceNode, spans []span, i int) ([]byte, error) {
	raw, s := f.doc.raw, spans[i]
	start, end := s.start, s.end
	comma := end + blanks(raw[end:])
	switch {
	case raw[comma] == ',':
		end = comma + 1
		if next := end + blanks(raw[end:]); raw[next] != ']' || i == 0 {
			end = next
		} else if before := bytes.TrimRight(raw[:start], " \t"); before[len(before)-1] == ',' {
			start = len(before) // [a, b,] keeps its comma at the end without a gap before it
		}
		// A line of its own is removed with it.
		line := 1 + bytes.LastIndexByte(raw[:start], '\n')
		if nl := lineEnd(raw[end:]); nl > 0 && blanks(raw[line:start]) == start-line {
			start, end = line, end+nl
		}
	case i > 0:
		if before := bytes.TrimRight(raw[:start], " \t"); before[len(before)-1] == ',' {
			start = len(before) - 1
		}
	}
	if open := f.front.offset(n.Start); open < 0 || start <= open {
		return nil, f.uneditableError("labels")
	}
	return splice(raw, start, end, ""), nil
}

func (f file) addBlock(n *ast.SequenceNode, label string) ([]byte, error) {
	spans, ok := f.labelSpans(n)
	if !ok || len(spans) == 0 {
		return nil, f.uneditableError("labels")
	}
	last := spans[len(spans)-1]
	line := 1 + bytes.LastIndexByte(f.doc.raw[:last.start], '\n')
	lead := string(f.doc.raw[line:last.start]) // indentation, dash, space
	if strings.TrimSpace(lead) != "-" {
		return nil, f.uneditableError("labels")
	}
	at := last.end + len(f.doc.line(last.end))
	return splice(f.doc.raw, at, at, lead+formatItem(label)+f.doc.newline), nil
}

func (f file) removeBlock(s span) ([]byte, error) {
	raw := f.doc.raw
	line := 1 + bytes.LastIndexByte(raw[:s.start], '\n')
	lead := raw[line:s.start]
	if string(bytes.TrimSpace(lead)) != "-" {
		return nil, f.uneditableError("labels")
	}
	dash := line + bytes.IndexByte(lead, '-')
	rest := s.end + blanks(raw[s.end:])
	if nl := lineEnd(raw[rest:]); nl > 0 {
		return splice(raw, line, rest+nl, ""), nil
	}
	if raw[rest] != '#' {
		return nil, f.uneditableError("labels")
	}
	return splice(raw, dash, rest, ""), nil
}

// replaceWithList replaces a text with commas by a list of labels.
func (f file) replaceWithList(v field, labels []string) ([]byte, error) {
	s, ok := f.span(v.value)
	if !ok {
		return nil, f.uneditableError("labels")
	}
	return splice(f.doc.raw, s.start, s.end, formatList(labels)), nil
}

// blanks counts the spaces and tabs at the start.
func blanks(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " \t")) }

// lineEnd returns the length of the line end at the start of b, or 0.
func lineEnd(b []byte) int {
	switch {
	case bytes.HasPrefix(b, []byte("\r\n")):
		return 2
	case bytes.HasPrefix(b, []byte("\n")):
		return 1
	}
	return 0
}
