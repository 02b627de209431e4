package neutral

import (
	"strings"
	"unicode"
)

// Terminal makes text safe to print on a terminal. It keeps line ends and tabs, and removes control characters (so that no
// escape sequence survives), text-direction overrides and invisible characters.
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

var gaps = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ") //nolint:gochecknoglobals // compiled on first use; nothing writes to it

// Line is Terminal for one line: line ends and tabs become spaces.
func Line(s string) string { return gaps.Replace(Terminal(s)) }

// Invisible reports whether the character is invisible or changes how a reader sees other characters.
func Invisible(r rune) bool {
	switch {
	case unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Cf, r) && r != '\u200d', // the zero-width joiner is part of emoji
		r == '\u2028', r == '\u2029':
		return true
	}
	return r >= 0xe0000 && r <= 0xe0fff // tags and supplementary variation selectors
}
