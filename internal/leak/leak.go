// Package leak finds secrets in text and data: known values, and text that has the shape of a well-known credential.
//
// A known value is found as it is, reversed, in base64 and base32 at any alignment, in hexadecimal, and in the escapes of
// URLs, JSON and programs; also when other signs stand between its letters, as in UTF-16, wrapped lines, dumps and string
// literals side by side. A credential is found as it is, in UTF-16 and in base64.
//
// It is a net for accidents and plain tricks, not a boundary: a secret can always be written in an unknown encoding. The
// time is linear in the input. Its callers are pool/redact, sandboxes/egress and sandboxes/runner.
package leak

import (
	"bytes"
	"slices"
	"strings"
)

// Shortest is the least length of a value that is looked for, in bytes; shorter ones are in ordinary text by chance.
const Shortest = 8

// Finder knows what to look for. It never changes and is safe for concurrent use.
type Finder struct {
	exact   index // the forms of values, byte by byte
	letters index // their letters and digits alone
	shapes  bool
}

// New returns a Finder for the values, in the forms in which they may stand, and for well-known credentials. Values
// shorter than Shortest are left out.
func New(values []string) *Finder {
	f := Known(values)
	f.shapes = true
	return f
}

// Known returns a Finder for the values alone.
func Known(values []string) *Finder {
	f := &Finder{exact: newIndex(&bytesAsTheyAre, false), letters: newIndex(&lettersOnly, true)}
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) < Shortest {
			continue
		}
		for _, form := range forms(v) {
			f.exact.add(form)
			f.letters.add(form)
		}
	}
	return f
}

// In reports whether the text carries a secret, encoded or not.
func (f *Finder) In(text string) bool { return f.in([]byte(text)) }

func (f *Finder) in(text []byte) bool {
	return f.hasValue(text) || f.hasValue(undump(text)) || f.shapes && (credential(text) || inWide(text) || inBase64(text))
}

func (f *Finder) hasValue(text []byte) bool {
	spans, _ := f.find(text, true)
	return len(spans) > 0
}

// find returns where values stand in the text, and where one begins that may go on after it, if it is not the last.
func (f *Finder) find(text []byte, last bool) (spans []span, open int) {
	spans, open = f.exact.find(text, last)
	more, begun := f.letters.find(text, last)
	return apart(append(spans, more...)), min(open, begun)
}

// findExact is find for values of which no sign is left out.
func (f *Finder) findExact(text []byte, last bool) (spans []span, open int) {
	spans, open = f.exact.find(text, last)
	return apart(spans), open
}

// span is a part of a text.
type span struct{ from, to int }

// apart drops spans that overlap: the first stays, and of those that begin together the longest.
func apart(spans []span) []span {
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

// SecretName reports whether a variable's name says that its value is secret.
func SecretName(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "APIKEY"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return slices.Contains(strings.Split(name, "_"), "KEY")
}

// undump returns what dumps in the text have of bytes, in hexadecimal; nothing when there is no dump.
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
