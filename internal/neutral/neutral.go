// Package neutral rewrites untrusted text so that no terminal, forge, chat or CI service acts on it: mentions, issue references,
// closing keywords, quick actions, HTML comments and skip-CI marks stay readable and do nothing. Reports, requests and
// commit messages use it. It also makes text safe for terminals, and shortens it for errors. The functions are safe for concurrent use.
package neutral

import (
	"regexp"
	"sync"
)

// action is an active pattern and its replacement. The replacement does not match the pattern.
type action struct {
	pattern     *regexp.Regexp
	replacement string
	scope       *regexp.Regexp // parts of the text in which the pattern is active; nil: everywhere
}

func (a action) replace(text string) string {
	if a.scope == nil {
		return a.pattern.ReplaceAllString(text, a.replacement)
	}
	return a.scope.ReplaceAllStringFunc(text, func(part string) string { return a.pattern.ReplaceAllString(part, a.replacement) })
}

// replaceAll replaces until nothing matches. One pass can miss matches that share a character ("@a@b").
func (a action) replaceAll(text string) (result string, passes int) {
	for {
		passes++
		next := a.replace(text)
		if next == text {
			return text, passes
		}
		text = next
	}
}

// actions are compiled on first use: few commands need them.
//
//nolint:gochecknoglobals // read-only table
var actions = sync.OnceValue(func() []action {
	return []action{
		{regexp.MustCompile(`(^|[^A-Za-z0-9])@([A-Za-z0-9_\[])`), "${1}@ $2", nil}, // e-mail addresses and package@1.2 stay
		{regexp.MustCompile(`#([\pL\pN_])`), "# $1", nil},
		{regexp.MustCompile(`!(\d)`), "! $1", nil},
		{regexp.MustCompile(`(&(?:amp;)?)(\d)`), "$1 $2", nil}, // an epic
		{regexp.MustCompile(`(?i)\b(G[HL]-)(\d)`), "$1 $2", nil},
		{regexp.MustCompile(`(?i)(\[(?:issue|work_item|epic):)(\S)`), "$1 $2", nil},
		// A kind may precede the number: /issues/incident/5.
		{regexp.MustCompile(`/(\d)`), "/ $1", regexp.MustCompile(`(?i)/(?:issues|pull|pulls|merge_requests|work_items|epics|discussions)/\S*`)},
		// GitLab passes Jira keys after a closing keyword to Jira, including lists of keys up to the first word that is not
		// a reference.
		{regexp.MustCompile(`([A-Z][A-Z0-9_]+-)(\d)`), "$1 $2", regexp.MustCompile(
			`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?|complet(?:e[sd]?|ing))[:,]?` +
				`(?:\s+(?:\S*\d\S*|(?:and|or|issues?|\S*[-#!&/])?[^\w\s]*))+`)},
		{regexp.MustCompile(`(?m)^([ \t]*)/([A-Za-z][\w-]*(?:[ \t]|$))`), `$1\/$2`, nil},
		{regexp.MustCompile("<!--"), "<! --", nil},
		{regexp.MustCompile("(`{15})(`)"), "$1 $2", nil},
		// Marks that make CI skip a commit: [skip ci], [ci skip], [no ci], [skip actions], …
		{regexp.MustCompile(`(?i)\[((?:[\w-]+[ _-])?skip[ _-][\w-]+(?:[ _-][\w-]+)*|(?:[\w-]+[ _-])+skip|no[ _-]ci)\]`), "[ $1]", nil},
		{regexp.MustCompile(`(?i)\*\*\*(NO_CI)`), "*** $1", nil},
		{regexp.MustCompile(`(?im)^([ \t]*(?:skip|request)-)(checks[ \t]*:)`), "$1 $2", nil},
	}
})

// Text neutralises text: each active pattern gets one visible extra character. It is idempotent: Text(Text(s)) == Text(s).
func Text(text string) string {
	for {
		before := text
		for _, a := range actions() {
			text, _ = a.replaceAll(text)
		}
		if text == before {
			return text
		}
	}
}
