package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/pool/report"
)

// Style is an SGR parameter of terminals.
type Style string

// The styles that ralph uses.
const (
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Paint colours text for standard output, if colours are on.
func (p *Printer) Paint(s Style, text string) string { return painted(p.color, s, text) }

// PaintErr colours text for standard error, if colours are on.
func (p *Printer) PaintErr(s Style, text string) string { return painted(p.ErrColor, s, text) }

func painted(on bool, s Style, text string) string {
	if !on || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// Clean makes untrusted text safe to print.
func Clean(s string) string { return neutral.Terminal(s) }

// CleanLine makes untrusted text one line that is safe to print.
func CleanLine(s string) string { return neutral.Line(s) }

// Shorten cuts text to n characters, with an ellipsis as the last one.
func Shorten(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n || n < 1 {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// Age formats a duration for people, in one or two units. It shows no unit below seconds for a minute or more.
func Age(d time.Duration) string {
	switch d = max(0, d); { // a clock may have been set back
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour-time.Second/2:
		return report.Rounded(d).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(report.Rounded(d).String(), "0s")
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Ago formats a time for people, relative to now.
func Ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d < 0:
		return t.Local().Format(time.DateTime)
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 30*24*time.Hour:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
	return t.Local().Format(time.DateOnly)
}

// Plural formats a number of things, such as "2 commits".
func Plural(n int, what string) string { return plural.Of(n, what) }

// ShortSHA shortens a commit's ID for people.
func ShortSHA(s string) string { return s[:min(12, len(s))] }
