package local

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/tracker"
)

const (
	maxFile  = 2 << 20  // bytes of a whole file
	maxIssue = 1 << 20  // bytes above the marker line
	maxFront = 16 << 10 // bytes of front matter; also bounds the YAML parser, which is not linear
)

const byteOrderMark = "\ufeff"

// document is one issue file split into its parts. All positions are byte offsets into raw.
type document struct {
	raw      []byte
	hasFront bool
	top      int // after the byte order mark
	front    int // start of the YAML
	frontEnd int // start of its closing line
	body     int
	bodyEnd  int // start of the marker line, or the end of the file
	newline  string
}

// lineError is an error at a line of the file.
type lineError struct {
	line int // from 1
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }
func (e *lineError) Unwrap() error { return e.err }

func errorAt(line int, format string, args ...any) error {
	return &lineError{line: line, err: fmt.Errorf(format, args...)}
}

// splitDocument splits a file into its parts.
func splitDocument(raw []byte) (document, error) {
	d := document{raw: raw, newline: "\n"}
	if i := bytes.IndexByte(raw, '\n'); i > 0 && raw[i-1] == '\r' {
		d.newline = "\r\n"
	}
	if !utf8.Valid(raw) {
		line := slices.IndexFunc(slices.Collect(bytes.Lines(raw)), func(l []byte) bool { return !utf8.Valid(l) })
		return d, errorAt(1+line, "not UTF-8; save the file as UTF-8")
	}
	if bytes.HasPrefix(raw, []byte(byteOrderMark)) {
		d.top = len(byteOrderMark)
	}
	d.front, d.frontEnd, d.body = d.top, d.top, d.top
	first := d.line(d.top)
	if fenceLine(first) {
		d.hasFront = true
		d.front = d.top + len(first)
		d.frontEnd = -1
		for at := d.front; at < len(raw); {
			line := d.line(at)
			if fenceLine(line) {
				d.frontEnd, d.body = at, at+len(line)
				break
			}
			at += len(line)
		}
		if d.frontEnd < 0 {
			return d, errorAt(1, "front matter has no end; add a line --- after it")
		}
		if d.frontEnd-d.front > maxFront {
			return d, errorAt(1, "front matter is over %d KiB; move text into the body", maxFront>>10)
		}
	}
	d.bodyEnd = markerAt(raw, d.body)
	if d.bodyEnd > maxIssue {
		return d, errorAt(1, "issue is over %d MiB; shorten it", maxIssue>>20)
	}
	return d, nil
}

// line returns the line that starts at an offset, including its line end.
func (d document) line(at int) []byte {
	if i := bytes.IndexByte(d.raw[at:], '\n'); i >= 0 {
		return d.raw[at : at+i+1]
	}
	return d.raw[at:]
}

// text returns the issue's body without surrounding empty lines, so that a report does not change it. It includes text that a
// person has written below the last report, such as an answer.
func (d document) text() string {
	text := strings.Trim(string(d.raw[d.body:d.bodyEnd]), "\r\n")
	if more := strings.Trim(string(d.raw[endOfReports(d):]), "\r\n"); more != "" {
		text = strings.TrimLeft(text+"\n\n"+more, "\r\n")
	}
	return text
}

// fenceLine reports whether a line opens or closes front matter.
func fenceLine(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && len(bytes.TrimRight(line, " \t\r\n")) == 3
}

// heading returns the first Markdown heading of a body, outside of code blocks.
func heading(body string) string {
	fence := ""
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if mark := tracker.Fence(line); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence = mark
			} else if mark == line { // a closing fence carries no text
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		text := strings.TrimLeft(line, "#")
		if depth := len(line) - len(text); depth < 1 || depth > 6 || !strings.HasPrefix(text, " ") {
			continue
		}
		if title := strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), "#")); title != "" {
			return title
		}
	}
	return ""
}

func lineOf(raw []byte, at int) int { return 1 + bytes.Count(raw[:at], []byte{'\n'}) }

// lineIn returns the line of an error, 1 if it has none.
func lineIn(err error) int {
	if at, ok := errors.AsType[*lineError](err); ok {
		return at.line
	}
	return 1
}
