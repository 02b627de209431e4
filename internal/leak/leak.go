// Package leak finds secrets in text and data: known values, and text that has the shape of a well-known credential.
// It also finds them in encoded form: base64 and base32 at any alignment and wrapped over lines, hexadecimal, dumps, UTF-16,
// percent and backslash escapes, gzip, zlib and zip, and in up to three of these one in the other. Known values are found
// in pieces, too, in string literals side by side.
//
// It is a net for accidents and plain tricks, not a boundary: a secret can always be written in an unknown encoding.
// No input makes it slow: the amount of decoded data is bounded by a multiple of the input. Its callers are
// pool/redact, sandboxes/egress and sandboxes/runner.
package leak

import (
	"bytes"
	"strings"
)

// Finder knows what to look for. It never changes and is safe for concurrent use.
type Finder struct {
	// first has, for each two bytes, the place in lists of the needles that begin with them; 0 for none.
	first [1 << 16]uint16
	lists [][]needle
	// longestValue is the length of the longest value; 0: there is none.
	longestValue int
}

// needle is one thing to look for: the beginning of a credential, or a whole value.
type needle struct {
	text  string
	shape *shape // nil: the text is all
}

// New returns a Finder for the values, in the forms in which they may stand, and for well-known credentials. Values
// shorter than Shortest are left out.
func New(values []string) *Finder {
	f := Known(values)
	known := shapes()
	for i := range known {
		for _, lead := range known[i].leads {
			f.add(needle{lead, &known[i]})
		}
	}
	return f
}

// Known returns a Finder for the values alone. It takes a small part of the time that New takes.
func Known(values []string) *Finder {
	f := &Finder{lists: make([][]needle, 1)}
	seen := map[string]bool{}
	for _, v := range values {
		if v, ok := value(v); ok {
			f.longestValue = max(f.longestValue, len(v))
		}
		for _, form := range forms(v) {
			if !seen[form] {
				seen[form] = true
				f.add(needle{text: form})
			}
		}
	}
	return f
}

func (f *Finder) add(n needle) {
	at := &f.first[pair(n.text[0], n.text[1])]
	if *at == 0 {
		*at = uint16(len(f.lists)) //nolint:gosec // there are far fewer lists than pairs
		f.lists = append(f.lists, nil)
	}
	f.lists[*at] = append(f.lists[*at], n)
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// In reports whether the text carries a secret, encoded or not.
func (f *Finder) In(text string) bool {
	found := false
	s := f.Scan(func(string) { found = true })
	s.Line("", []byte(text))
	s.End()
	return found
}

// plain reports whether the text carries a secret as it is.
func (f *Finder) plain(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		list := f.first[pair(text[i], text[i+1])]
		if list == 0 {
			continue
		}
		for _, n := range f.lists[list] {
			if len(text)-i >= len(n.text) && string(text[i:i+len(n.text)]) == n.text && (n.shape == nil || n.shape.fits(text, i, len(n.text))) {
				return true
			}
		}
	}
	return false
}

// Replace returns the text with every value of which New was told, as it stands, replaced. It does not look for
// credentials, nor into encodings that are not among a value's usual forms.
func (f *Finder) Replace(text []byte, by string) []byte {
	var out []byte
	from := 0
	for i := 0; i+1 < len(text); i++ {
		n := f.longest(text[i:])
		if n == 0 {
			continue
		}
		out = append(append(out, text[from:i]...), by...)
		i += n - 1
		from = i + 1
	}
	if out == nil {
		return text
	}
	return append(out, text[from:]...)
}

// longest is the length of the longest value that the text begins with.
func (f *Finder) longest(text []byte) int {
	best := 0
	if list := f.first[pair(text[0], text[1])]; list != 0 {
		for _, n := range f.lists[list] {
			if n.shape == nil && len(n.text) > best && bytes.HasPrefix(text, []byte(n.text)) {
				best = len(n.text)
			}
		}
	}
	return best
}

// value cuts the space around values and leaves out what is too short to be looked for.
func value(v string) (string, bool) {
	v = strings.TrimSpace(v)
	return v, len(v) >= Shortest
}
