package tracker

import (
	"html"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// hiddenMarkup matches character entities, and HTML comments with the ends that browsers accept.
var hiddenMarkup = pattern.Lazy(`(?s)<!--(?:-?>|.*?(?:--!?>|\z))|&(?:[A-Za-z][A-Za-z0-9]*;|#(?:[0-9]+|[xX][0-9A-Fa-f]+);?)`)

const (
	commentPlaceholder = "<!-- … -->"
	entityPlaceholder  = "&…;" // replaces an entity: without it the surrounding text could form another entity
)

// VisibleText returns the part of a text that a person sees who approves an issue: Clean of the text, without the content of HTML
// comments and without entities of characters that Clean removes. The number counts the removed characters. It also removes them
// inside of code, since renderers disagree on what is code.
func VisibleText(text string) (string, int) {
	text, count := Clean(text)
	text = hiddenMarkup().ReplaceAllStringFunc(text, func(found string) string {
		if inside, is := strings.CutPrefix(found, "<!--"); is {
			if inside = strings.TrimRight(inside, "-!>"); inside == "" || found == commentPlaceholder {
				return found
			}
			count += utf8.RuneCountInString(inside)
			return commentPlaceholder
		}
		if seen, _ := Clean("a" + html.UnescapeString(found)); seen != "a" {
			return found
		}
		count++
		return entityPlaceholder
	})
	return text, count
}
