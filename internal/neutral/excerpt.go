package neutral

import (
	"strings"
	"unicode/utf8"
)

// Shorten returns s, cut to at most limit bytes. If it cuts, the result ends with an ellipsis, splits no character, and does
// not keep the memory of s alive. A limit below 3, the size of the ellipsis, counts as 3.
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

// Excerpt returns Terminal(s) in one line, cut as by Shorten, for error messages. Runs of white space become one space.
func Excerpt(s string, limit int) string {
	return Shorten(strings.Join(strings.Fields(Terminal(s)), " "), limit)
}
