package leak

import (
	"bytes"
	"regexp"
)

// shape is how a kind of credential looks.
type shape struct {
	leads []string // what it begins with, at least two bytes that ordinary text seldom has
	of    *class   // what the rest is made of
	least int      // how many of these
	exact bool     // no more of letters, digits and underscores may follow
	mixed bool     // there have to be a digit and a capital, which words with dashes between them seldom have
	// inside is for what is unmistakable: it may stand at the end of a longer word.
	inside bool
	// whole is for what is not that simple: it has to match from the lead on. It is tried after the others.
	whole *regexp.Regexp
	// back is how many bytes before the lead belong to it; whole is matched from there.
	back int
	// test is for what no pattern says: it is told where the lead stands, and decides alone.
	test func(text []byte, at int) bool
}

// longestShape bounds what a pattern looks at, in bytes.
const longestShape = 512

// fits reports whether the credential whose lead of n bytes stands at i is there.
func (s *shape) fits(text []byte, i, n int) bool {
	if s.test != nil {
		return s.test(text, i)
	}
	from := i - s.back
	if from < 0 || !s.inside && !begins(text, from, text[i+n-1]) {
		return false
	}
	if s.whole != nil {
		m := s.whole.FindIndex(text[from:min(len(text), from+longestShape)])
		return m != nil && !placeholder(text[from:from+m[1]])
	}
	rest := text[i+n:]
	if len(rest) < s.least {
		return false
	}
	for _, c := range rest[:s.least] {
		if !s.of[c] {
			return false
		}
	}
	if s.exact && len(rest) > s.least && words[rest[s.least]] || s.mixed && !s.isMixed(rest) {
		return false
	}
	shown := s.least // what follows may show that it is none
	for shown < min(len(rest), s.least+2*longestRun) && s.of[rest[shown]] {
		shown++
	}
	return !placeholder(rest[:shown])
}

// isMixed reports whether what the text begins with has a digit and a capital.
func (s *shape) isMixed(text []byte) bool {
	digit, upper := false, false
	for _, c := range text[:min(len(text), longestShape)] {
		if !s.of[c] {
			break
		}
		digit, upper = digit || digits[c], upper || upperCase[c]
	}
	return digit && upper
}

// begins reports whether what stands at i is not the end of a longer word. After an escape a word begins; after an
// underscore, one whose lead has an underscore or a dash as its last byte.
func begins(text []byte, i int, last byte) bool {
	if i == 0 || !words[text[i-1]] || !words[text[i]] {
		return true
	}
	if i > 2 && text[i-3] == '%' {
		return true
	}
	switch text[i-1] {
	case '_':
		return last == '_' || last == '-'
	case 'n', 't', 'r':
		return i > 1 && text[i-2] == '\\'
	}
	return false
}

// longestRun is how often a credential has one letter or digit at a stretch, at most. What has more is a placeholder.
const longestRun = 7

// placeholder reports whether what has the shape of a credential only shows how one looks.
func placeholder(text []byte) bool {
	run := 0
	for i, c := range text {
		if i > 0 && c != text[i-1] || !letters[c] {
			run = 0
		}
		if run++; run > longestRun {
			return true
		}
	}
	return bytes.Contains(bytes.ToUpper(text), []byte("EXAMPLE"))
}

// class is a set of bytes.
type class [256]bool

func classOf(ranges ...string) *class {
	var c class
	for _, r := range ranges {
		for b := int(r[0]); b <= int(r[len(r)-1]); b++ {
			c[b] = true
		}
	}
	return &c
}

//nolint:gochecknoglobals // tables, never written
var (
	words   = classOf("A-Z", "a-z", "0-9", "_")
	letters = classOf("A-Z", "a-z", "0-9")
	capital = classOf("A-Z", "0-9")
	dashed  = classOf("A-Z", "a-z", "0-9", "_", "-")
	dotted  = classOf("A-Z", "a-z", "0-9", "_", "-", ".")
	hexes   = classOf("a-f", "A-F", "0-9")
	lowHex  = classOf("a-f", "0-9")
	bech    = classOf("A-Z", "0-9")
	base64s = classOf("A-Z", "a-z", "0-9", "+", "/")
	anyCode = classOf("A-Z", "a-z", "0-9", "+", "/", "-", "_", "=")

	digits    = classOf("0-9")
	upperCase = classOf("A-Z")
)
