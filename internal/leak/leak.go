// Package leak finds secrets in text and data: known values, and text in the format of a well-known credential.
//
// It finds a known value unencoded, reversed, in base64 (reversed, too) and base32 at any alignment, in hexadecimal, as decimal
// numbers, in entities of HTML, in calls such as chr(82), and in the escapes of URLs, JSON and programs; also with other characters
// between its letters, as in UTF-16, wrapped lines, dumps, and adjacent string literals. It finds a credential unencoded, in UTF-16
// and in base64.
//
// This catches accidents and simple tricks, but is no security boundary: a secret can always be written in an unknown
// encoding. The time is linear in the input. The callers are pool/redact, sandboxes/egress and sandboxes/runner.
package leak

import (
	"bytes"
	"slices"
	"strings"
)

// Shortest is the minimum length of a searched value in bytes. Shorter values occur in ordinary text by chance.
const Shortest = 8

// Finder searches for secrets. It is immutable and safe for concurrent use.
type Finder struct {
	exact    index // encoded values, byte by byte
	letters  index // letters and digits of encoded values
	entities index // values in text where entities of HTML stand for bytes
	shapes   bool
}

// New returns a Finder for the values, in all their encodings, and for well-known credentials. It ignores values shorter
// than Shortest.
func New(values []string) *Finder {
	f := Known(values)
	f.shapes = true
	return f
}

// Known returns a Finder for the values only.
func Known(values []string) *Finder {
	f := &Finder{exact: newIndex(&identityFold, nil), letters: newIndex(&lettersOnly, escape), entities: newIndex(&identityFold, entity)}
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) < Shortest {
			continue
		}
		f.entities.add(v)
		for _, form := range forms(v) {
			f.exact.add(form)
			f.letters.add(form)
		}
	}
	return f
}

// In reports whether the text contains a secret, encoded or not.
func (f *Finder) In(text string) bool { return f.hasMatch([]byte(text)) }

func (f *Finder) hasMatch(text []byte) bool {
	return f.hasValue(text) || f.hasValue(undump(text)) || f.shapes && (credential(text) || inUTF16(text) || inBase64(text))
}

func (f *Finder) hasValue(text []byte) bool {
	spans, _ := f.find(text, true)
	return len(spans) > 0
}

// find returns the spans of values in the text, and where a value begins that may continue after the text, unless it is the
// last.
func (f *Finder) find(text []byte, last bool) (spans []span, open int) {
	spans, open = f.findExact(text, last)
	more, begun := f.letters.find(text, last)
	return dropOverlaps(append(spans, more...)), min(open, begun)
}

// findExact is find for values without other characters between their letters.
func (f *Finder) findExact(text []byte, last bool) (spans []span, open int) {
	spans, open = f.exact.find(text, last)
	if bytes.IndexByte(text, '&') >= 0 {
		more, begun := f.entities.find(text, last)
		spans, open = append(spans, more...), min(open, begun)
	}
	return dropOverlaps(spans), open
}

// span is a half-open range of a text.
type span struct{ from, to int }

// dropOverlaps drops overlapping spans: the first one wins, and of those with the same start the longest.
func dropOverlaps(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	end := 0
	return slices.DeleteFunc(spans, func(s span) bool {
		if s.from < end {
			return true
		}
		end = s.to
		return false
	})
}

// SecretName reports whether the name of a variable suggests a secret value.
func SecretName(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "APIKEY"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return slices.Contains(strings.Split(name, "_"), "KEY")
}

// undump returns the hexadecimal digits of the bytes in dumps; nothing if the text has no dump.
func undump(text []byte) (digits []byte) {
	for line := range bytes.Lines(text) {
		if offset := 6; len(line) > offset && !bytes.ContainsFunc(line[:offset], func(r rune) bool { return r > 0xff || !hexes[r] }) {
			if m := dumpLine().FindSubmatch(line); m != nil {
				digits = append(append(digits, m[1]...), '\n')
			}
		}
	}
	return digits
}
