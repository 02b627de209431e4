package loop

import (
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/neutral"
)

// cut bounds a text to limit bytes without splitting a rune, and marks that something is missing.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit - len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]) + "…" // cloned so that a short text does not keep a long one alive
}

// oneLine makes a text fit for one line of an error.
func oneLine(s string, limit int) string {
	return cut(strings.Join(strings.Fields(neutral.Terminal(s)), " "), limit)
}

// fence marks a text as data. The delimiter is a row of tildes longer than any in the text, so that nothing in it can
// end the block early.
func fence(text string) string {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] == '~' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	bar := strings.Repeat("~", max(5, longest+1))
	return bar + "\n" + strings.TrimRight(text, "\n") + "\n" + bar + "\n"
}
