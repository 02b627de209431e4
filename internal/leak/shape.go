package leak

import (
	"bytes"
	"regexp"
)

// shape describes the format of a kind of credential.
type shape struct {
	leads     []string // prefixes; at least two bytes that are rare in ordinary text
	chars     *class   // bytes after the prefix
	minLength int      // minimum number of these bytes
	exact     bool     // no further letters, digits or underscores may follow
	mixed     bool     // requires a digit and a capital, which hyphenated words rarely have together
	// withinWord allows the prefix within a longer word, for unmistakable prefixes.
	withinWord bool
	// pattern is a pattern for more complex formats. It is matched from the prefix, and is tried after the other fields.
	pattern *regexp.Regexp
	// bytesBefore is the number of bytes before the prefix that belong to the credential; pattern is matched from there.
	bytesBefore int
	// test replaces all other checks, for formats that no pattern describes. It gets the position of the prefix.
	test func(text []byte, at int) bool
}

// longestShape limits the text that a pattern is matched against, in bytes.
const longestShape = 512

// fits reports whether a credential with the prefix of n bytes at i is there.
func (s *shape) fits(text []byte, i, n int) bool {
	if s.test != nil {
		return s.test(text, i)
	}
	from := i - s.bytesBefore
	if from < 0 || !s.withinWord && !isWordStart(text, from, text[i+n-1]) {
		return false
	}
	if s.pattern != nil {
		m := s.pattern.FindIndex(text[from:min(len(text), from+longestShape)])
		return m != nil && !placeholder(text[from:from+m[1]])
	}
	rest := text[i+n:]
	if len(rest) < s.minLength {
		return false
	}
	for _, c := range rest[:s.minLength] {
		if !s.chars[c] {
			return false
		}
	}
	if s.exact && len(rest) > s.minLength && words[rest[s.minLength]] || s.mixed && !s.isMixed(rest) {
		return false
	}
	shown := s.minLength // the bytes after the minimum may reveal a placeholder
	for shown < min(len(rest), s.minLength+2*longestRun) && s.chars[rest[shown]] {
		shown++
	}
	return !placeholder(rest[:shown])
}

// isMixed reports whether the credential at the start of the text has a digit and a capital.
func (s *shape) isMixed(text []byte) bool {
	digit, upper := false, false
	for _, c := range text[:min(len(text), longestShape)] {
		if !s.chars[c] {
			break
		}
		digit, upper = digit || digits[c], upper || upperCase[c]
	}
	return digit && upper
}

// isWordStart reports whether a word may begin at i: after another character than a letter, digit or underscore, after an
// escape, or after an underscore if the prefix ends with an underscore or a dash.
func isWordStart(text []byte, i int, last byte) bool {
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

// longestRun is the maximum number of repetitions of a letter or digit in a credential. Longer runs mean a placeholder.
const longestRun = 7

// placeholder reports whether text in the format of a credential is only an example.
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
