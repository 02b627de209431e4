package tracker

import "strings"

const cutNote = "\n\n… (cut: the whole text is in ralph's log)"

// Fit cuts a text to at most limit bytes and closes a code fence that the cut left open. The limit must be several hundred bytes.
func Fit(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const longestFence = 64
	text = Cut(text, limit-len(cutNote)-longestFence-1)
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch mark := Fence(line); {
		case fence == "" && len(mark) <= longestFence:
			fence = mark
		case fence != "" && mark == line && strings.HasPrefix(mark, fence):
			fence = ""
		}
	}
	if fence != "" {
		text += "\n" + fence
	}
	return text + cutNote
}
