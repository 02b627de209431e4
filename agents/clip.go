package agents

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The maximum lengths of texts that a decoder makes.
const (
	MaxDetail  = 200 // runes of a tool's detail or of an unknown line
	MaxMessage = 500 // runes of a failure's message
)

// Clip reduces hostile text to one harmless line of at most limit runes: white space and control characters become single
// blanks, invisible and bidirectional characters are dropped. Its cost is bounded by limit, not by len(s).
func Clip(s string, limit int) string {
	cut := false
	if most := limit * utf8.UTFMax * 2; len(s) > most {
		s, cut = s[:most], true
	}
	var b strings.Builder
	runes, blank := 0, false
	for i, r := range s {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			blank = runes > 0
			continue
		case unicode.Is(unicode.Cf, r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			continue
		}
		if runes >= limit {
			cut = true
			break
		}
		if blank {
			b.WriteByte(' ')
			runes, blank = runes+1, false
		}
		b.WriteRune(r)
		runes++
	}
	if cut {
		b.WriteRune('…')
	}
	return b.String()
}

// lastLine returns the last line of s that is not blank.
func lastLine(s string) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// firstLineWith returns the first line of s that contains sub, or "".
func firstLineWith(s, sub string) string {
	i := strings.Index(s, sub)
	if i < 0 {
		return ""
	}
	start := strings.LastIndexByte(s[:i], '\n') + 1
	line, _, _ := strings.Cut(s[start:], "\n")
	return line
}
