package gitlab

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxText is the longest text that ralph posts, in bytes. GitLab takes 1,000,000 characters; people read on phones.
const maxText = 65536

const cutNote = "\n\n… (cut: the whole report is in the log)"

// quickAction is what GitLab executes in a note or a description: a line that begins with a slash and a word.
var quickAction = regexp.MustCompile(`(?m)^([ \t]*)/([A-Za-z])`) //nolint:gochecknoglobals // a pattern

// fit makes a text ready to be posted with room bytes left: no line of it is a command to GitLab, and a fence that the
// cut left open is closed.
func fit(text string, room int) string {
	text = quickAction.ReplaceAllString(text, `$1\/$2`)
	limit := maxText - room
	if len(text) <= limit {
		return text
	}
	limit -= len(cutNote) + maxFence + 1
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	text = text[:limit]
	if fence := openFence(text); fence != "" {
		text += "\n" + fence
	}
	return text + cutNote
}

const maxFence = 64

// openFence is the fence of a code block that the text does not close.
func openFence(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case open == "" && len(ticks) >= 3 && len(ticks) <= maxFence:
			open = ticks
		case open != "" && len(ticks) >= len(open) && line == ticks:
			open = ""
		}
	}
	return open
}
