package cli

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
)

// style is a terminal colour; its value is the SGR parameter.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// paint colours text on a terminal.
func (p *printer) paint(s style, text string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// clean makes text of others safe to print on a terminal: it keeps lines and tabs, and removes control characters (so
// that no escape sequence survives), text-direction overrides and characters that cannot be seen.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), invisible(r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
}

// invisible reports the characters that change or hide what a reader sees.
func invisible(r rune) bool {
	switch {
	case unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Cf, r) && r != '\u200d', // the joiner makes emoji
		r == '\u2028', r == '\u2029':
		return true
	}
	return r >= 0xe0000 && r <= 0xe0fff // tags and supplementary variation selectors
}

// cleanLine is clean for one line: line ends and tabs become spaces.
func cleanLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(clean(s))
}

// shorten cuts text to n characters, the last of which then says so.
func shorten(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n || n < 1 {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// age is a duration for people: one or two units, none smaller than a second unless all is.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + age(-max(d, -math.MaxInt64)) // the least duration has no positive
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// indent puts the lines after the first below the text of a log line.
func indent(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n                      ")
}
