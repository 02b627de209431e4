package tracker

import (
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/pattern"
)

const (
	commentStart = "<!--"
	commentEnd   = "-->"
	leftOut      = " … "
)

// Shown is Clean of Markdown, without what is in HTML comments: no page shows it to the person who approves an issue. It keeps
// comments in code only where every page shows them as code, so that no text can hide one by looking like code; in other places it
// leaves one out too many.
func Shown(text string) (string, int) {
	text, count := Clean(text)
	var code []span
	if count == 0 { // else the page has been made of another text
		code = codeIn(text)
	}
	var b strings.Builder
	from := 0
	for {
		n := strings.Index(text[from:], commentStart)
		if n < 0 {
			return b.String() + text[from:], count
		}
		at := from + n
		for len(code) > 0 && code[0].to <= at {
			code = code[1:]
		}
		if len(code) > 0 && code[0].from <= at {
			b.WriteString(text[from:code[0].to])
			from = code[0].to
			continue
		}
		inside, _, closed := strings.Cut(text[at+len(commentStart):], commentEnd)
		if inside != leftOut {
			count += utf8.RuneCountInString(inside)
		}
		b.WriteString(text[from:at] + commentStart + leftOut + commentEnd)
		if from = at + len(commentStart) + len(inside); closed {
			from += len(commentEnd)
		}
	}
}

// span is a part of a text.
type span struct{ from, to int }

var (
	// Only where one of these is may what follows an empty line be HTML, or not be shown.
	htmlStart = pattern.Lazy(`(?i)<(?:[!?]|/?(?:iframe|math|noembed|noframes|noscript|object|plaintext|pre|rp|script|select|style|svg|template|textarea|title|xmp)\b)`)
	// In a tag that is left open may all that follows be an attribute.
	wholeTags = pattern.Lazy(`^(?:[^<]|<[^a-zA-Z/<]|</?[a-zA-Z][^<>"'=]*>|<[a-zA-Z][\w-]*(?:\s+[\w:-]+(?:="[^"<>]*"|='[^'<>]*'|=[^\s"'=<>]+)?)*\s*/?>)*<?$`)
	// Such an item begins even below a paragraph.
	itemStart = pattern.Lazy(`^[-*+] (?:\[[ xX]\] )?`)
	// A comment of one line opens nothing.
	wholeComment = pattern.Lazy(`^<!--[^<>]+-->$`)
	// Ticks in the description of a block of ticks would make it none.
	fenceStart = pattern.Lazy("^(?:(```+)[^`]*|(~~~+).*)$")
	// A page draws such a block, and shows no comment of it.
	drawn = pattern.Lazy("(?i)[&\\\\]|^[`~]+\\W*(?:actdiag|blockdiag|bpmn|bytefield|c4plantuml|d2|dbml|diagramsnet|ditaa|erd|excalidraw|geojson|graphviz|json:table|math|" +
		"mermaid|nomnoml|nwdiag|packetdiag|pikchr|plantuml|rackdiag|seqdiag|stl|structurizr|svgbob|symbolator|tikz|topojson|umlet|vega|wavedrom|wireviz)")
	// What these begin, or end, is not the same on all pages: a block that may be an item's, a quote of GitLab's, and a formula.
	unclear   = pattern.Lazy("^(?: {1,3}(?:```|~~~)| {0,3}>>>|[ >]*\\$\\$)")
	emptyLine = pattern.Lazy(`\n[ \t]*(?:\n|$)`)
	// GitLab makes a block of what is between two such lines.
	frontMatter = pattern.Lazy(`^(?:.*coding:.*)?\s*(?:---|\+\+\+|;;;)`)
)

// codeIn finds what every Markdown page shows as it is: blocks between fences, spans between ticks in lines that begin a paragraph or an
// item of a list, where no HTML can be open, and the start of a comment without an end within text.
func codeIn(text string) (out []span) {
	if frontMatter().MatchString(text) {
		return nil
	}
	fence, shows, opened, blank, html, plain, at := "", false, 0, true, false, true, 0
	for line := range strings.Lines(text) {
		begin, row := at, strings.TrimRight(line, "\n")
		at += len(line)
		m := fenceStart().FindStringSubmatch(row)
		html = html && !blank
		switch {
		case fence != "":
			if closes(row, fence) && shows {
				out = append(out, span{opened, at})
			}
			if closes(row, fence) {
				fence = ""
			}
		case m != nil && !html:
			fence, shows, opened = m[1]+m[2], !drawn().MatchString(row), at // no page shows what stands behind the fence
		case m != nil, unclear().MatchString(row):
			return out
		default:
			kept, item := 0, len(itemStart().FindString(row))
			if blank || item > 0 && !html {
				for _, s := range spansIn(row[item:]) {
					out, kept = append(out, span{begin + item + s.from, begin + item + s.to}), item+s.to
				}
			}
			left := row[kept:]
			plain = plain || blank || item > 0
			if n := strings.IndexAny(left, "<]"); n >= 0 && plain && !html && begins(row[item:]) && unclosed(text[begin+kept+n:]) {
				out, left = append(out, span{begin + kept + n, begin + kept + n + 1}), left[:n]+left[n+len(commentStart):]
			}
			whole := wholeComment().MatchString(row)
			if !whole && (htmlStart().MatchString(left) || !wholeTags().MatchString(left)) {
				return out
			}
			plain = plain && !strings.ContainsAny(left, "<]")
			html = html || strings.HasPrefix(strings.TrimLeft(row, " "), "<") && !whole
		}
		blank = fence == "" && strings.Trim(row, " \t") == ""
	}
	if fence != "" && shows {
		out = append(out, span{opened, len(text)})
	}
	return out
}

// closes reports the end of a block between fences.
func closes(row, fence string) bool {
	end := strings.TrimRight(strings.TrimLeft(row, " "), " \t")
	return len(row)-len(strings.TrimLeft(row, " ")) < 4 && len(end) >= len(fence) && strings.Trim(end, fence[:1]) == ""
}

// spansIn finds the code spans in a paragraph's first line, up to what may make them none: HTML, an escape, a formula, and the
// address, title or name of a link.
func spansIn(row string) (out []span) {
	if !begins(row) || strings.Contains(row, "|") {
		return nil
	}
	for at := 0; at < len(row) && !strings.ContainsRune("<\\]$", rune(row[at])); {
		n := ticks(row[at:])
		if n == 0 {
			at++
			continue
		}
		end := at + n
		for end < len(row) && ticks(row[end:]) != n {
			end += max(1, ticks(row[end:]))
		}
		word := row[strings.LastIndexByte(row[:at], ' ')+1 : at]
		if end == len(row) || strings.Trim(word, "(\"'*_~") != "" {
			break
		}
		out = append(out, span{at, end + n})
		at = end + n
	}
	return out
}

// begins reports a line of which the first word is text or code, so that no block begins there.
func begins(row string) bool {
	return row != "" && (isLetter(row[0]) || row[0] == '`' && ticks(row) < 3)
}

// unclosed reports that a text begins like a comment, which does not end in its paragraph, where every page shows it then.
func unclosed(text string) bool {
	paragraph := text
	if end := emptyLine().FindStringIndex(text); end != nil {
		paragraph = text[:end[0]]
	}
	return strings.HasPrefix(text, commentStart) && !strings.Contains(paragraph, commentEnd) && strings.Count(paragraph, commentStart) == 1
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// ticks counts those at the beginning.
func ticks(s string) int { return len(s) - len(strings.TrimLeft(s, "`")) }
