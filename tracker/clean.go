package tracker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes characters from a tracker's text that the person who approved it could not see: control characters
// except tab and newline, zero-width and bidirectional controls, tag characters, fillers and stray variation selectors.
// It returns valid UTF-8 with "\n" line ends, and the number of characters that were removed or replaced. Windows line
// ends are not counted. Call it on text before a prompt or a terminal shows it.
func Clean(text string) (string, int) {
	var b strings.Builder
	b.Grow(len(text))
	count := 0
	last := utf8.RuneError // the last rune kept
	appendRune := func(r rune) {
		b.WriteRune(r)
		last = r
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == utf8.RuneError && size == 1:
			count++
			appendRune(utf8.RuneError)
		case r == '\r':
			if i < len(text) && text[i] == '\n' {
				continue
			}
			count++
			appendRune('\n')
		case r == '\u2028', r == '\u2029', r == '\u0085': // line ends that most editors do not show
			count++
			appendRune('\n')
		case invisible(r, last):
			count++
		default:
			appendRune(r)
		}
	}
	return b.String(), count
}

// Line reduces external text to one clean line. If it is longer than limit bytes, it is cut there and an ellipsis is added.
func Line(s string, limit int) string {
	s, _ = Clean(s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		return Cut(s, limit) + "…"
	}
	return s
}

// invisible reports whether r is invisible to a reader when it follows prev.
func invisible(r, prev rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || 0x7f <= r && r <= 0x9f:
		return true
	case r == 0xfe0e || r == 0xfe0f: // text or emoji style: valid once after a symbol
		return !unicode.In(prev, unicode.S, unicode.Po, unicode.Nd)
	case 0xe0100 <= r && r <= 0xe01ef: // ideographic variants
		return !unicode.Is(unicode.Han, prev)
	case 0xe0000 <= r && r <= 0xe0fff:
		return true
	case unicode.Is(unicode.Variation_Selector, r):
		return true
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r) // visible signs of Arabic and others
	}
	return unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Noncharacter_Code_Point, r)
}
