package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/neutral"
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

// paint colours text for standard output, where that is a terminal, and paintErr text for standard error.
func (p *printer) paint(s style, text string) string    { return painted(p.color, s, text) }
func (p *printer) paintErr(s style, text string) string { return painted(p.errColor, s, text) }

func painted(on bool, s style, text string) string {
	if !on || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// clean and cleanLine make text of others safe to print.
func clean(s string) string     { return neutral.Terminal(s) }
func cleanLine(s string) string { return neutral.Line(s) }

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

// ago is a time for people, seen from now. Programs get it as it is.
func ago(t, now time.Time) string {
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

// indent puts the lines after the first below the text of a log line.
func indent(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n                      ")
}
