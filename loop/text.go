package loop

import "strings"

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
