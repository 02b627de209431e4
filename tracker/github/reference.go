package github

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// reference is an issue that a text names. An empty project means the project of the text.
type reference struct {
	project string // OWNER/NAME
	number  int
}

const maxReferences = 50 // per text; the rest are ignored

// referenceExpr matches a reference as people write it: #12, OWNER/NAME#12, GH-12, or a URL.
const referenceExpr = `(?:(?:[\w.-]+/[\w.-]+)?#\d+|GH-\d+|https?://[\w.:-]+/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+)`

var (
	blockingText = pattern.Lazy(`(?i)\b(?:blocked[ -]by|depends[ -]on)\b:?[ \t]*\**:?[ \t]*(` +
		referenceExpr + `(?:(?:[ \t]*,[ \t]*(?:and[ \t]+)?|[ \t]+and[ \t]+|[ \t]*&[ \t]*)` + referenceExpr + `)*)`)
	closingText  = pattern.Lazy(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b:?[ \t]+(` + referenceExpr + `)`)
	anyReference = pattern.Lazy(`(?i)` + referenceExpr)
	shortForm    = pattern.Lazy(`(?i)^(?:([\w.-]+/[\w.-]+)?#|GH-)(\d+)$`)
	addressForm  = pattern.Lazy(`(?i)^https?://([\w.:-]+)/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)$`)
	hiddenText   = pattern.Lazy(`(?s)<!--.*?(?:-->|$)`)
	codeSpanText = pattern.Lazy("`+[^`\n]*`+")
)

// blockersIn returns the issues that a text names as blockers, each once, in order. Code, quotations and hidden text do not count.
func blockersIn(text, host, project string) []reference {
	var all []reference
	for _, m := range blockingText().FindAllStringSubmatch(plainText(text), maxReferences) {
		for _, one := range anyReference().FindAllString(m[1], maxReferences) {
			all = appendReference(all, one, host, project)
		}
	}
	return all
}

// closedIssues returns the issues that a pull request closes when it is merged.
func closedIssues(text, host, project string) []reference {
	var all []reference
	for _, m := range closingText().FindAllStringSubmatch(plainText(text), maxReferences) {
		all = appendReference(all, m[1], host, project)
	}
	return all
}

// appendReference parses one reference and appends it, unless the list has it or is full.
func appendReference(all []reference, one, host, project string) []reference {
	r, ok := parseReference(one, host, project)
	if !ok || len(all) >= maxReferences {
		return all
	}
	if slices.ContainsFunc(all, func(known reference) bool {
		return known.number == r.number && strings.EqualFold(known.project, r.project)
	}) {
		return all
	}
	return append(all, r)
}

func parseReference(s, host, project string) (reference, bool) {
	var name, digits string
	if m := shortForm().FindStringSubmatch(s); m != nil {
		name, digits = m[1], m[2]
	} else if m := addressForm().FindStringSubmatch(s); m != nil && strings.EqualFold(m[1], host) {
		name, digits = m[2], m[3]
	} else {
		return reference{}, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n <= 0 {
		return reference{}, false
	}
	if strings.EqualFold(name, project) {
		name = ""
	}
	if owner, repo, ok := strings.Cut(name, "/"); ok && (!ownerName().MatchString(owner) || repo == "." || repo == "..") {
		return reference{}, false
	}
	return reference{project: name, number: int(n)}, true
}

// plainText returns a text without HTML comments, code and quotations.
func plainText(text string) string {
	text = hiddenText().ReplaceAllString(text, " ")
	var b strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				fence = ""
			}
			continue
		}
		if mark := tracker.Fence(trimmed); mark != "" {
			fence = mark
			continue
		}
		if !strings.HasPrefix(trimmed, ">") {
			b.WriteString(codeSpanText().ReplaceAllString(line, " "))
		}
	}
	return b.String()
}
