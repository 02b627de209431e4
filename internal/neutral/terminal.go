package neutral

import (
	"strings"
	"unicode"
)

// Terminal makes text safe to print on a terminal: it keeps lines and tabs, and removes control characters (so that no escape
// sequence survives), text-direction overrides and characters that cannot be seen.
func Terminal(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), Invisible(r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
}

// Line is Terminal for one line: line ends and tabs become spaces.
func Line(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(Terminal(s))
}

// Invisible reports the characters that change or hide what a reader sees.
func Invisible(r rune) bool {
	switch {
	case unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Cf, r) && r != '\u200d', // the joiner makes emoji
		r == '\u2028', r == '\u2029':
		return true
	}
	return r >= 0xe0000 && r <= 0xe0fff // tags and supplementary variation selectors
}
