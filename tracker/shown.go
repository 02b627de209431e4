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
	var b strings.Builder
	from := 0
	for code := codeIn(text); ; {
		n := strings.Index(text[from:], commentStart)
		if n < 0 {
			return b.String() + text[from:], count
		}
		at := from + n
		for len(code) > 0 && code[0].to <= at {
			code = code[1:]
		}
		if len(code) > 0 && code[0].from < at {
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
	// Only where one of these is may what follows an empty line be HTML.
	htmlStart = pattern.Lazy(`(?i)<(?:[!?]|/?(?:pre|script|style|textarea)\b)`)
	// Such an item begins even below a paragraph.
	itemStart = pattern.Lazy(`^[-*+] (?:\[[ xX]\] )?`)
	// A comment of one line opens nothing.
	wholeComment = pattern.Lazy(`^<!--[^<>]+-->$`)
	// Ticks in the description of a block of ticks would make it none.
	fenceStart = pattern.Lazy("^(?:(```+)[^`]*|(~~~+).*)$")
)

// codeIn finds what every Markdown page shows as code: blocks between fences, and spans between ticks in lines that begin a paragraph or
// an item of a list, where no HTML can be open.
func codeIn(text string) (out []span) {
	fence, opened, blank, at := "", 0, true, 0
	for line := range strings.Lines(text) {
		begin, row := at, strings.TrimRight(line, "\n")
		at += len(line)
		switch m := fenceStart().FindStringSubmatch(row); {
		case fence != "":
			if closes(row, fence) {
				out, fence = append(out, span{opened, at}), ""
			}
		case blank && m != nil:
			fence, opened = m[1]+m[2], begin
		default:
			kept, item := 0, len(itemStart().FindString(row))
			if blank || item > 0 {
				for _, s := range spansIn(row[item:]) {
					out, kept = append(out, span{begin + item + s.from, begin + item + s.to}), item+s.to
				}
			}
			if htmlStart().MatchString(row[kept:]) && !wholeComment().MatchString(row) {
				return out
			}
		}
		blank = fence == "" && strings.Trim(row, " \t") == ""
	}
	if fence != "" {
		out = append(out, span{opened, len(text)})
	}
	return out
}

// closes reports the end of a block between fences.
func closes(row, fence string) bool {
	end := strings.TrimRight(strings.TrimLeft(row, " "), " \t")
	return len(row)-len(strings.TrimLeft(row, " ")) < 4 && len(end) >= len(fence) && strings.Trim(end, fence[:1]) == ""
}

// spansIn finds the code spans in a paragraph's first line, up to what may make them none.
func spansIn(row string) (out []span) {
	if row == "" || !isLetter(row[0]) && (row[0] != '`' || ticks(row) > 2) || strings.Contains(row, "|") {
		return nil
	}
	for at := 0; at < len(row) && row[at] != '<' && row[at] != '\\'; {
		n := ticks(row[at:])
		if n == 0 {
			at++
			continue
		}
		end := at + n
		for end < len(row) && ticks(row[end:]) != n {
			end += max(1, ticks(row[end:]))
		}
		if end == len(row) {
			break
		}
		out = append(out, span{at, end + n})
		at = end + n
	}
	return out
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// ticks counts those at the beginning.
func ticks(s string) int { return len(s) - len(strings.TrimLeft(s, "`")) }
