package neutral

import (
	"strings"
	"unicode/utf8"
)

// Shorten returns s in at most limit bytes. Where something is cut off, the text ends with an ellipsis; no character is split,
// and the result does not keep the memory of s. A limit below 3, the size of the ellipsis, counts as 3.
func Shorten(s string, limit int) string {
	const ellipsis = "…"
	if len(s) <= limit {
		return s
	}
	n := max(0, limit-len(ellipsis))
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]) + ellipsis
}

// Excerpt is Shorten of Terminal for one line, such as an error's: any white space becomes one space.
func Excerpt(s string, limit int) string {
	return Shorten(strings.Join(strings.Fields(Terminal(s)), " "), limit)
}
