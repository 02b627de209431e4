package leak

import (
	"bytes"
	"io"
	"strings"
)

// Replace replaces every value given to New in the text, in all encodings. It searches neither for credentials nor for
// values with other characters between their letters: the text may be JSON.
func (f *Finder) Replace(text []byte, by string) []byte {
	return replace(text, by, f.findExact)
}

// ReplaceInLog is Replace for lines of a log. It also replaces values with other characters between their letters, except across the
// strings of a line of JSON, which stays JSON.
func (f *Finder) ReplaceInLog(text []byte, by string) []byte {
	return replace(text, by, func(text []byte, last bool) (spans []span, open int) {
		spans, open = f.findExact(text, last)
		more, _ := f.letters.find(text, last)
		return dropOverlaps(append(spans, insideStrings(text, more)...)), open
	})
}

func replace(text []byte, by string, find func([]byte, bool) ([]span, int)) []byte {
	spans, open := find(text, true)
	if len(spans) == 0 {
		return text
	}
	var out bytes.Buffer
	w := &writer{out: &out, find: func([]byte, bool) ([]span, int) { return spans, open }, replacement: func(int) string { return by }}
	_ = w.pass(text, true) // a Buffer never fails
	return out.Bytes()
}

// insideStrings returns the spans, which are in order, without those that touch a line of JSON outside of one of its strings.
func insideStrings(text []byte, spans []span) (inside []span) {
	at, isJSON, inString := 0, beginsJSON(text), false
	// skip reads until the position, and reports whether it is in the same string as the beginning, or in no JSON.
	skip := func(to int) (same bool) {
		for same = inString || !isJSON; at < to; at++ {
			switch c := text[at]; {
			case c == '\n':
				isJSON, inString = beginsJSON(text[at+1:]), false
				same = same && !isJSON
			case !isJSON:
			case c == '\\' && inString:
				at++
			case c == '"':
				inString, same = !inString, false
			}
		}
		return same && at == to // otherwise the position is within an escape
	}
	for _, s := range spans {
		if s.from < at { // overlaps the one before
			continue
		}
		skip(s.from)
		if at == s.from && skip(s.to) {
			inside = append(inside, s)
		}
	}
	return inside
}

// beginsJSON reports whether the text's first line seems to be JSON.
func beginsJSON(text []byte) bool {
	const blanks = " \t\r"
	text = bytes.TrimLeft(text, blanks)
	if array, ok := bytes.CutPrefix(text, []byte("[")); ok { // many logs begin a line with [INFO] or a time
		text = bytes.TrimLeft(array, blanks)
		return len(text) > 0 && strings.IndexByte(`{["`, text[0]) >= 0
	}
	return len(text) > 0 && text[0] == '{'
}

// Redact returns a writer that replaces values in a stream as Replace does in a text, however the stream is split. It holds
// back only a possible start of a value, until more data arrives or it is closed. Close does not close to.
func (f *Finder) Redact(to io.Writer, by string) io.WriteCloser {
	return &writer{out: to, find: f.findExact, replacement: func(int) string { return by }}
}

// Mask returns a writer that replaces each value that In finds by as many stars as the value has bytes. It holds back what
// Redact does, but nothing across an empty line, so that a stream of events is not delayed.
func (f *Finder) Mask(to io.Writer) io.WriteCloser {
	return &writer{out: to, find: f.find, replacement: func(n int) string { return strings.Repeat("*", n) }}
}

type writer struct {
	out         io.Writer
	find        func(text []byte, last bool) (spans []span, open int)
	replacement func(size int) string
	pending     []byte
}

func (w *writer) Write(p []byte) (int, error) { return len(p), w.pass(append(w.pending, p...), false) }

// Close writes the held bytes.
func (w *writer) Close() error { return w.pass(w.pending, true) }

func (w *writer) pass(text []byte, last bool) error {
	spans, open := w.find(text, last)
	if last {
		open = len(text)
	}
	var out []byte
	done := 0
	for _, s := range spans {
		if s.from >= open {
			break
		}
		out = append(append(out, text[done:s.from]...), w.replacement(s.to-s.from)...)
		done = s.to
	}
	if done < open {
		out = append(out, text[done:open]...)
		done = open
	}
	w.pending = bytes.Clone(text[done:])
	if len(out) == 0 {
		return nil
	}
	_, err := w.out.Write(out)
	return err
}
