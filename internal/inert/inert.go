// Package inert takes the force out of text: what a forge, or a program that reads along, would act on stays readable and
// does nothing. Reports, requests and the messages of an agent's commits go by the same rules.
package inert

import "regexp"

// What a raw reader could act on, and what stands in its place. None matches its own replacement.
//
//nolint:gochecknoglobals // a table, never written
var actions = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`(^|[^A-Za-z0-9])@([A-Za-z0-9_\[])`), "${1}@ $2"}, // not an e-mail address or package@1.2
	{regexp.MustCompile(`#([\pL\pN_])`), "# $1"},
	{regexp.MustCompile(`!(\d)`), "! $1"},
	{regexp.MustCompile(`(?i)\b(G[HL]-)(\d)`), "$1 $2"},
	{regexp.MustCompile(`(?i)(\[(?:issue|work_item|epic):)(\S)`), "$1 $2"},
	{regexp.MustCompile(`(?i)(/(?:issues|pull|pulls|merge_requests|work_items|epics|discussions)/)(\d)`), "$1 $2"},
	// GitLab hands a key after a closing keyword on to Jira.
	{regexp.MustCompile(`((?i:\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?):? +(?:issues? +)?)[A-Z][A-Z0-9_]+-)(\d)`), "$1 $2"},
	{regexp.MustCompile(`(?m)^([ \t]*)/([A-Za-z][\w-]*(?:[ \t]|$))`), `$1\/$2`},
	{regexp.MustCompile("<!--"), "<! --"},
	{regexp.MustCompile("(`{15})(`)"), "$1 $2"},
	// What makes continuous integration pass a commit over: [skip ci], [ci skip], [no ci], [skip actions], …
	{regexp.MustCompile(`(?i)\[((?:[\w-]+[ _-])?skip[ _-][\w-]+(?:[ _-][\w-]+)*|(?:[\w-]+[ _-])+skip|no[ _-]ci)\]`), "[ $1]"},
	{regexp.MustCompile(`(?i)\*\*\*(NO_CI)`), "*** $1"},
	{regexp.MustCompile(`(?im)^([ \t]*(?:skip|request)-)(checks[ \t]*:)`), "$1 $2"},
}

// Text breaks what acts in text, by one visible character each. What it returns it leaves alone when it gets it again.
func Text(text string) string {
	for {
		before := text
		for _, a := range actions {
			// Matches may share a character ("@a@b"), so that one pass does not find all of them.
			for {
				next := a.find.ReplaceAllString(text, a.put)
				if next == text {
					break
				}
				text = next
			}
		}
		if text == before {
			return text
		}
	}
}
