package prompt

import "strings"

// Fence marks a text as data: it encloses it in two rows of at least five tildes, longer than any in the text, so that nothing in
// the text can end the block. The result ends with a newline.
func Fence(text string) string {
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
