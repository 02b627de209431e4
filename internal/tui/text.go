package tui

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/pool/report"
)

const (
	textMax = 4096 // bytes of a line that are processed
	marks   = 3    // combining marks per character; more would overlap adjacent lines
)

// plain turns untrusted text into one line of known width. It removes control characters, excess combining marks and
// characters that join others, because terminals disagree about the width of these.
func plain(s string) string {
	cut := len(s) > textMax
	if cut {
		s = s[:textMax] // neutral.Line removes a cut character
	}
	n := 0
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u200d', unicode.Is(unicode.Variation_Selector, r):
			return -1
		case !unicode.Is(unicode.M, r):
			n = 0
		case n == marks:
			return -1
		default:
			n++
		}
		return r
	}, neutral.Line(s))
}

func width(s string) int { return ansi.StringWidthWc(s) }

// cut shortens text to n columns and marks the cut with an ellipsis.
func cut(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return ansi.TruncateWc(s, n, "…")
}

// left and right pad or cut text to exactly n columns.
func left(s string, n int) string {
	s = cut(s, n)
	return s + strings.Repeat(" ", max(0, n-width(s)))
}

func right(s string, n int) string {
	s = cut(s, n)
	return strings.Repeat(" ", max(0, n-width(s))) + s
}

// stamp is the width of the time at the start of a log line.
const stamp = len("15:04:05  ")

// wrapLog wraps a log line between words. Continuation lines are indented to the text if there is room.
func wrapLog(s string, n int) []string {
	indent := stamp
	if n < 4*stamp {
		indent = 0
	}
	lines := strings.Split(ansi.WrapWc(s, max(n-indent, 1), ""), "\n")
	for i, line := range lines {
		if i > 0 {
			line = strings.Repeat(" ", indent) + strings.TrimLeft(line, " ")
		}
		lines[i] = cut(strings.TrimRight(line, " "), n)
	}
	return lines
}

// Hang wraps a line that begins at column used. It breaks at blanks only, and between Chinese or Japanese characters; further lines are
// indented. A word that does not fit beside the indentation begins at the left, and stays whole.
func Hang(line string, used, indent, columns int) string {
	var out strings.Builder
	for line != "" {
		gap := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		word := line[len(gap):]
		word = word[:wordEnd(word)]
		line = line[len(gap)+len(word):]
		blanks := width(gap)
		for i := range len(gap) {
			if gap[i] == '\t' {
				blanks += 8 - (used+blanks)%8
			}
		}
		n := width(word)
		if used+blanks+n <= columns {
			out.WriteString(gap + word)
			used += blanks + n
			continue
		}
		if used > 0 {
			out.WriteString("\n")
		}
		if indent+n > columns {
			out.WriteString(word)
			used = columns // the next word begins a new line as well
			continue
		}
		out.WriteString(strings.Repeat(" ", indent) + word)
		used = indent + n
	}
	return strings.TrimRight(out.String(), " \t")
}

// wordEnd returns the length of the text's first part that may not be broken.
func wordEnd(text string) int {
	unspaced := func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }
	last := false
	for i, r := range text {
		now := unspaced(r)
		if r == ' ' || r == '\t' || last && now {
			return i
		}
		last = now
	}
	return len(text)
}

// elapsed formats a duration in at most six characters.
func elapsed(d time.Duration) string {
	d = report.Rounded(max(d.Round(time.Second), 0))
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h >= 48:
		return fmt.Sprintf("%dd%02dh", h/24, h%24)
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}

// extraLines returns the number of additional lines that a text takes on a terminal that wraps after columns.
func extraLines(text string, columns int) (more int) {
	for line := range strings.SplitSeq(text, "\n") {
		more += max(width(line)-1, 0) / max(columns, 1)
	}
	return more
}

// reflows reports whether the terminal wraps long lines when it becomes narrower. Nearly all do; the others cut lines off.
func reflows(env []string) bool {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if name == "XTERM_VERSION" || name == "STY" || name == "TERM" && (value == "linux" || strings.HasPrefix(value, "rxvt")) {
			return false
		}
	}
	return true
}
