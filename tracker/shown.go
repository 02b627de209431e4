package tracker

import (
	"strings"
	"unicode/utf8"
)

const (
	commentStart = "<!--"
	commentEnd   = "-->"
	leftOut      = " … "
)

// Shown is Clean of a text, without what is in HTML comments: no page shows it to the person who approves an issue. Comments in code
// go too, as pages do not agree on what is code.
func Shown(text string) (string, int) {
	rest, count := Clean(text)
	var b strings.Builder
	for {
		before, after, found := strings.Cut(rest, commentStart)
		b.WriteString(before)
		if !found {
			return b.String(), count
		}
		inside, next, _ := strings.Cut(after, commentEnd)
		if inside != leftOut {
			count += utf8.RuneCountInString(inside)
		}
		b.WriteString(commentStart + leftOut + commentEnd)
		rest = next
	}
}
