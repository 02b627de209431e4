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
var quickAction = regexp.MustCompile(`(?m)^([ \t]*)/([A-Za-z])`)

// fit makes a text ready to be posted in at most limit bytes, which are some hundred at least: no line of it is a command
// to GitLab, and a fence that the cut left open is closed.
func fit(text string, limit int) string {
	text = quickAction.ReplaceAllString(text, `$1\/$2`)
	if len(text) <= limit {
		return text
	}
	limit -= len(cutNote) + maxFence + 1
	text = cut(text, limit)
	if fence := openFence(text); fence != "" {
		text += "\n" + fence
	}
	return text + cutNote
}

// cut returns at most n bytes of s, ending at a rune's end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
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
