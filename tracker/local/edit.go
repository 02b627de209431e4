package local

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/tracker"
)

// applyChange edits labels and state in a file, one value at a time, and verifies that the result has the new values and that
// nothing else changed. It returns a file that needs no change as it is. The error for a value that cannot be edited has its line.
func applyChange(raw []byte, c tracker.Change) ([]byte, error) {
	before, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return applyToFile(before, c)
}

// applyToFile is applyChange for a parsed file.
func applyToFile(before file, c tracker.Change) ([]byte, error) {
	for _, l := range c.AddLabels {
		if strings.TrimSpace(l) == "" || strings.ContainsFunc(l, unicode.IsControl) {
			return nil, fmt.Errorf("label %q is empty or not one line", l)
		}
	}
	raw, want := before.doc.raw, before.header
	current := before
	apply := func(edit func(file) ([]byte, error)) error {
		next, err := edit(current)
		if err != nil {
			return err
		}
		f, err := parse(next)
		if err != nil {
			return errorAt(before.fieldLine("labels"), "cannot be edited safely (%w); change it by hand", err)
		}
		current = f
		return nil
	}
	for _, l := range c.RemoveLabels {
		for i := indexLabel(current.labels, l); i >= 0; i = indexLabel(current.labels, l) {
			if err := apply(func(f file) ([]byte, error) { return removeLabel(f, i) }); err != nil {
				return nil, err
			}
			want.labels = slices.Delete(slices.Clone(want.labels), i, i+1)
			if !slices.Equal(current.labels, want.labels) {
				return nil, before.uneditableError("labels")
			}
		}
	}
	for _, l := range c.AddLabels {
		if indexLabel(current.labels, l) >= 0 {
			continue
		}
		l = strings.TrimSpace(l)
		if err := apply(func(f file) ([]byte, error) { return addLabel(f, l) }); err != nil {
			return nil, err
		}
		want.labels = append(slices.Clone(want.labels), l)
	}
	if c.Close && current.open || c.Reopen && !current.open {
		want.open = !current.open
		if err := apply(func(f file) ([]byte, error) { return setState(f, want.open) }); err != nil {
			return nil, err
		}
	}
	if !current.header.equal(want) || !slices.Equal(current.front.otherFields(), before.front.otherFields()) ||
		current.doc.text() != before.doc.text() || !bytes.Equal(current.doc.raw[current.doc.bodyEnd:], raw[before.doc.bodyEnd:]) {
		return nil, before.uneditableError("labels")
	}
	return current.doc.raw, nil
}

func indexLabel(labels []string, l string) int {
	return slices.IndexFunc(labels, func(v string) bool { return tracker.SameLabel(v, l) })
}

// fieldLine returns the line of a field, 1 if there is none.
func (f file) fieldLine(name string) int {
	if v, ok := f.front.find(name); ok {
		return v.line
	}
	return 1
}

// uneditableError returns the error for a value whose position in the file is uncertain.
func (f file) uneditableError(name string) error {
	example := map[string]string{"labels": "labels: [one, two]", "state": "state: open"}[name]
	return errorAt(f.fieldLine(name), "%s cannot be edited safely as written; write it as %s", name, example)
}

func setState(f file, open bool) ([]byte, error) {
	state := "closed"
	if open {
		state = "open"
	}
	v, ok := f.front.find("state")
	if !ok {
		return f.insertField("state", state)
	}
	if _, null := v.value.(*ast.NullNode); null {
		return f.fillNull(v, state)
	}
	span, ok := f.span(v.value)
	if !ok {
		return nil, f.uneditableError("state")
	}
	return splice(f.doc.raw, span.inner, span.innerEnd, state), nil
}

// insertField adds a key at the end of the front matter, and creates the front matter if there is none.
func (f file) insertField(name, value string) ([]byte, error) {
	d, nl := f.doc, f.doc.newline
	if !d.hasFront {
		return splice(d.raw, d.top, d.top, "---"+nl+name+": "+value+nl+"---"+nl+nl), nil
	}
	indent := ""
	if len(f.front.fields) > 0 {
		at := f.front.fields[0].key
		if f.front.flow || at < 0 {
			return nil, f.uneditableError(name)
		}
		start := 1 + bytes.LastIndexByte(d.raw[:at], '\n')
		indent = string(d.raw[start:at])
		if strings.TrimSpace(indent) != "" {
			return nil, f.uneditableError(name)
		}
	}
	return splice(d.raw, d.frontEnd, d.frontEnd, indent+name+": "+value+nl), nil
}

// fillNull gives a value to a key without one.
func (f file) fillNull(v field, value string) ([]byte, error) {
	if v.colon < 0 {
		return nil, f.uneditableError(v.name)
	}
	at := v.colon + 1
	rest := string(f.doc.line(at))
	trimmed := strings.TrimLeft(rest, " \t")
	for _, null := range []string{"null", "Null", "NULL", "~"} {
		if after, ok := strings.CutPrefix(trimmed, null); ok && strings.Trim(after[:min(1, len(after))], " \t\r\n") == "" {
			at += len(rest) - len(trimmed)
			return splice(f.doc.raw, at, at+len(null), value), nil
		}
	}
	return splice(f.doc.raw, at, at, " "+value), nil
}

// span is the position of a scalar in the file: with its quotes, and within them.
type span struct {
	start, end      int
	inner, innerEnd int
}

// span finds a plain or quoted scalar. It does not support anchors, tags or block scalars.
func (f file) span(n ast.Node) (span, bool) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
	default:
		return span{}, false
	}
	tok := n.GetToken()
	at := f.front.offset(tok)
	if at < 0 {
		return span{}, false
	}
	raw := f.doc.raw[:f.doc.frontEnd]
	if !quoted(raw[at]) {
		if tok.Value == "" || strings.ContainsRune(tok.Value, '\n') || !bytes.HasPrefix(raw[at:], []byte(tok.Value)) {
			return span{}, false
		}
		end := at + len(tok.Value)
		return span{at, end, at, end}, true
	}
	for i := at + 1; i < len(raw); i++ {
		switch {
		case raw[i] == '\\' && raw[at] == '"':
			i++
		case raw[i] != raw[at]:
		case raw[at] == '\'' && i+1 < len(raw) && raw[i+1] == '\'':
			i++
		default:
			return span{at, i + 1, at + 1, i}, true
		}
	}
	return span{}, false
}

var (
	plainLabel = pattern.Lazy(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)
	yamlWord   = pattern.Lazy(`(?i)^(true|false|yes|no|on|off|null|y|n)$`)
)

// formatList formats labels as a YAML list.
func formatList(labels []string) string {
	var items []string
	for _, l := range labels {
		items = append(items, formatItem(l))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// formatItem formats a label as an entry of a YAML list.
func formatItem(label string) string {
	if plainLabel().MatchString(label) && !yamlWord().MatchString(label) {
		return label
	}
	return "'" + strings.ReplaceAll(label, "'", "''") + "'"
}
