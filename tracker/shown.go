package tracker

import (
	"html"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// hidden matches HTML comments, which end as browsers end them, and entities.
var hidden = pattern.Lazy(`(?s)<!--(?:-?>|.*?(?:--!?>|\z))|&(?:[A-Za-z][A-Za-z0-9]*;|#(?:[0-9]+|[xX][0-9A-Fa-f]+);?)`)

const (
	leftOut = "<!-- … -->"
	unseen  = "&…;" // for an entity: without it the text around could become another one
)

// Shown is Clean of a text, without what is in HTML comments, and without entities of characters that Clean removes: no page shows
// them to the person who approves an issue. Those in code go too, as pages do not agree on what is code.
func Shown(text string) (string, int) {
	text, count := Clean(text)
	text = hidden().ReplaceAllStringFunc(text, func(found string) string {
		if inside, is := strings.CutPrefix(found, "<!--"); is {
			if inside = strings.TrimRight(inside, "-!>"); inside == "" || found == leftOut {
				return found
			}
			count += utf8.RuneCountInString(inside)
			return leftOut
		}
		if seen, _ := Clean("a" + html.UnescapeString(found)); seen != "a" {
			return found
		}
		count++
		return unseen
	})
	return text, count
}
