package github

import (
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/tracker"
)

// clip makes text from outside fit for one line.
func clip(s string, longest int) string {
	s, _ = tracker.Clean(s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= longest {
		return s
	}
	return cutAt(s, longest) + "…"
}

// cutAt returns at most n bytes of s, ending at a rune's end.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
