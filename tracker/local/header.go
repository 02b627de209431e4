package local

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/ralph-pool/ralph/internal/nearest"
	"github.com/ralph-pool/ralph/internal/pattern"
)

// header has the fields of the front matter that ralph reads.
type header struct {
	title     string
	labels    []string
	open      bool
	priority  int
	blockedBy []reference
	author    string
	assignees []string
	milestone string
	created   time.Time
	touches   []string // nil: the key is missing
}

// reference is a reference to another issue.
type reference struct {
	name string // as written, without .md
	line int
}

// readHeader interprets the fields. Unknown fields are the user's.
func readHeader(f frontMatter) (header, error) {
	h := header{open: true}
	for _, v := range f.fields {
		var err error
		switch v.name {
		case "title":
			h.title, err = v.text()
			h.title = strings.Join(strings.Fields(h.title), " ")
		case "author":
			h.author, err = v.text()
		case "assignee", "assignees":
			var names []string
			names, err = v.texts()
			h.assignees = append(h.assignees, names...)
		case "milestone":
			h.milestone, err = v.text()
		case "labels":
			h.labels, err = v.texts()
		case "blocked_by":
			var items []listItem
			items, err = v.list()
			for _, i := range items {
				h.blockedBy = append(h.blockedBy, reference{name: stem(i.text), line: i.line})
			}
		case "touches":
			h.touches, err = v.patterns()
		case "state":
			h.open, err = v.isOpen()
		case "priority":
			h.priority, err = v.intValue()
		case "created":
			h.created, err = v.dateValue()
		}
		if err != nil {
			return header{}, err
		}
	}
	return h, nil
}

// slip is a field whose name resembles a missing field.
type slip struct {
	field
	meant string
}

func (s slip) error() error {
	return errorAt(s.line, "%s is not a field that ralph knows; did you mean %s?", quoteShort(s.name), s.meant)
}

// keeps reports whether the field was meant to keep the issue from being worked now.
func (s slip) keeps() bool {
	switch s.meant {
	case "blocked_by", "touches":
		return true
	case "state": // the user's own field may be named "status"
		open, err := s.isOpen()
		return err == nil && !open
	}
	return false
}

// slips returns the fields whose names resemble a missing field that decides what is worked, when and whether.
func (f frontMatter) slips() (list []slip) {
	missing := []string{"title", "labels", "blocked_by", "touches", "state", "priority"}
	for _, v := range f.fields {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == v.name })
	}
	for _, v := range f.fields {
		if slices.Contains([]string{"author", "assignee", "assignees", "milestone", "created"}, v.name) {
			continue
		}
		if meant := nearest.To(v.name, missing); meant != "" {
			list = append(list, slip{v, meant})
		}
	}
	return list
}

// fieldErrors returns errors for slips, and for front matter that does not count because of empty lines above it.
func (f frontMatter) fieldErrors() (errs []error) {
	for _, s := range f.slips() {
		errs = append(errs, s.error())
	}
	body := f.doc.raw[f.doc.body:f.doc.bodyEnd]
	rest := bytes.TrimLeft(body, "\r\n")
	if first, more, _ := bytes.Cut(rest, []byte("\n")); len(rest) < len(body) && fenceLine(first) && bytes.Contains(more, []byte("\n---")) {
		errs = append(errs, errorAt(1, "front matter begins in the first line of a file; remove the empty lines above it"))
	}
	return errs
}

// equal compares two headers, except for line numbers.
func (h header) equal(o header) bool {
	return h.title == o.title && h.open == o.open && h.priority == o.priority && h.author == o.author &&
		h.milestone == o.milestone && slices.Equal(h.assignees, o.assignees) && h.created.Equal(o.created) && slices.Equal(h.labels, o.labels) &&
		(h.touches == nil) == (o.touches == nil) && slices.Equal(h.touches, o.touches) &&
		slices.EqualFunc(h.blockedBy, o.blockedBy, func(a, b reference) bool { return a.name == b.name })
}

func (v field) text() (string, error) {
	s, ok := scalar(v.value)
	if !ok {
		return "", errorAt(v.line, "%s is not a text; write %s: \"some text\"", v.name, v.name)
	}
	return strings.TrimSpace(s), nil
}

// patterns returns a list of path patterns; "none" stands for the empty list.
func (v field) patterns() ([]string, error) {
	items, err := v.list()
	list := []string{}
	for _, i := range items {
		if !pattern.Valid(i.text) {
			return nil, errorAt(i.line, "%s has %s, which is not a path pattern, or has too many alternatives; "+
				"write %s: [src/api/**, README.md]", v.name, quoteShort(i.text), v.name)
		}
		list = append(list, i.text)
	}
	if len(list) == 1 && list[0] == "none" {
		list = list[:0]
	}
	return list, err
}

func (v field) isOpen() (open bool, err error) {
	s, _ := scalar(v.value)
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "open":
		return true, nil
	case "closed":
		return false, nil
	case "":
		if _, null := v.value.(*ast.NullNode); null {
			return true, nil
		}
	}
	return false, errorAt(v.line, "state is %s; write state: open or state: closed", quoteShort(s))
}

func (v field) intValue() (int, error) {
	s, ok := scalar(v.value)
	if s == "" && ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, errorAt(v.line, "priority is %s; write a whole number, such as priority: 1", quoteShort(s))
	}
	return int(n), nil
}

func (v field) dateValue() (time.Time, error) {
	s, ok := scalar(v.value)
	if s == "" && ok {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errorAt(v.line, "created is %s; write a date such as 2026-11-30, or a time such as 2026-11-30T15:04:05Z", quoteShort(s))
}

// listItem is one entry of a list.
type listItem struct {
	text string
	line int
}

// list parses a list, or a text with commas.
func (v field) list() ([]listItem, error) {
	listError := func(line int) error {
		return errorAt(line, "%s is not a list of texts; write %s: [one, two]", v.name, v.name)
	}
	nodes, isList := sequence(v.value)
	if !isList {
		s, ok := scalar(v.value)
		if !ok {
			return nil, listError(v.line)
		}
		var items []listItem
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				items = append(items, listItem{part, v.line})
			}
		}
		return items, nil
	}
	var items []listItem
	for _, n := range nodes {
		line := v.line
		if n != nil && n.GetToken() != nil {
			line = 1 + n.GetToken().Position.Line
		}
		s, ok := scalar(n)
		if !ok {
			return nil, listError(line)
		}
		if s = strings.TrimSpace(s); s != "" {
			items = append(items, listItem{s, line})
		}
	}
	return items, nil
}

// texts parses a list and drops the line numbers.
func (v field) texts() ([]string, error) {
	items, err := v.list()
	var all []string
	for _, i := range items {
		all = append(all, i.text)
	}
	return all, err
}

// quoteShort quotes a user's value for an error, shortened.
func quoteShort(s string) string {
	if s == "" {
		return "not a single value"
	}
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return strconv.Quote(s)
}
