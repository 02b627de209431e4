package tracker

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/neutral"
)

const (
	minQuote  = 64 // bytes; room for the fence and the note on what was cut
	quoteInfo = "text"
)

// Quote makes agent text safe for a report: a fenced block of at most limit bytes that is neutralised. The fence
// prevents Markdown, HTML, links and images from being rendered, and text inside cannot close it. Programs that read the
// raw text, and squash commits that copy it, find no mention, issue reference, closing keyword, HTML comment or quick
// action: each is broken by one visible character. Text that does not fit is cut on a rune boundary, and the block says
// by how much. A limit below 64 counts as 64; empty text gives "".
func Quote(text string, limit int) string {
	body := neutralised(text)
	if strings.TrimSpace(body) == "" {
		return ""
	}
	body = strings.TrimRight(body, "\n")
	fence := strings.Repeat("`", max(3, longestTicks(body)+1))
	head, tail := fence+quoteInfo+"\n", "\n"+fence
	limit = max(limit, minQuote)
	if room := limit - len(head) - len(tail); len(body) > room {
		note := func(n int) string { return fmt.Sprintf("\n… (%d more bytes)", n) }
		kept := Cut(body, max(0, room-len(note(len(body)))))
		body = kept + note(len(body)-len(kept))
	}
	return head + body + tail
}

// QuoteLine makes agent text, such as a commit's subject, safe inside a line of a report: a neutralised code span of at
// most limit bytes, by the rules of Quote. A limit below 64 counts as 64; empty text gives "".
func QuoteLine(text string, limit int) string {
	body := strings.Join(strings.Fields(neutralised(text)), " ")
	if body == "" {
		return ""
	}
	ticks := strings.Repeat("`", longestTicks(body)+1)
	const ellipsis = "…"
	limit = max(limit, minQuote)
	if room := limit - 2*len(ticks) - 2; len(body) > room {
		body = Cut(body, room-len(ellipsis)) + ellipsis
	}
	if strings.HasPrefix(body, "`") || strings.HasSuffix(body, "`") {
		body = " " + body + " "
	}
	return ticks + body + ticks
}

// Code returns a code span for a name that ralph chose, such as a branch name. The name stays unchanged, so that people can
// copy it.
func Code(name string) string {
	ticks := strings.Repeat("`", longestTicks(name)+1)
	if strings.HasPrefix(name, "`") || strings.HasSuffix(name, "`") {
		name = " " + name + " "
	}
	return ticks + name + ticks
}

// neutralised cleans and neutralises text.
func neutralised(text string) string {
	text, _ = Clean(text)
	return neutral.Text(text)
}

func longestTicks(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Cut returns at most n bytes of s and does not split a rune.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Plain makes text safe for a place that shows it unformatted, such as a request's title: one neutralised line of at
// most limit bytes, by the rules of Quote.
func Plain(text string, limit int) string {
	return Cut(strings.Join(strings.Fields(neutralised(text)), " "), limit)
}

// Fence returns the run of backticks or tildes at the start of line that opens or closes a code block, or "".
func Fence(line string) string {
	for _, mark := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}
