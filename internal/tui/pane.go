package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// diffMax is how many lines of a diff are shown.
const diffMax = 5000

// pane shows lines of one run below it. A pane never changes.
type pane struct {
	run    Run
	diff   bool // of what the run's commits change; else its log
	said   bool // why there is no diff, instead of one
	lines  []string
	top    int  // the first line that is seen
	follow bool // the last lines are seen, whatever comes
}

func (p pane) with(lines []string) *pane {
	p.lines = lines
	return &p
}

// press scrolls. room is how many lines are seen.
func (p pane) press(key string, room int) (*pane, bool) {
	last := max(0, len(p.lines)-room)
	if p.follow {
		p.top = last
	}
	switch key {
	case "up", "k":
		p.top--
	case "down", "j":
		p.top++
	case "pgup", "b":
		p.top -= room
	case "pgdown", "space", " ":
		p.top += room
	case "home", "g":
		p.top = 0
	case "end", "G":
		p.top = last
	default:
		return nil, false
	}
	p.top = min(max(p.top, 0), last)
	p.follow = !p.diff && p.top == last
	return &p, true
}

// seen are the lines that fit: room lines of at most columns each. A log and what is said break long lines, so that nothing of it is lost.
func (p pane) seen(room, columns int, s styles) []string {
	from := min(p.top, max(0, len(p.lines)-room))
	if p.follow {
		from = max(0, len(p.lines)-room)
	}
	lines := p.lines[from:min(from+room, len(p.lines))]
	var out []string
	for _, line := range lines {
		if p.said {
			out = append(out, strings.Split(ansi.WrapWc(line, columns, ""), "\n")...)
			continue
		}
		if p.diff {
			out = append(out, s.diff(cut(line, columns)))
			continue
		}
		for i, part := range wrapLog(line, columns) {
			if i == 0 {
				part = s.logged(part)
			}
			out = append(out, part)
		}
	}
	if len(out) > room && p.follow {
		return out[len(out)-room:]
	}
	return out[:min(room, len(out))]
}

func diffLines(text string) []string {
	lines := strings.SplitN(strings.TrimRight(text, "\n"), "\n", diffMax+1)
	if len(lines) > diffMax {
		lines[diffMax] = "and more"
	}
	for i, line := range lines {
		lines[i] = plain(strings.ReplaceAll(line, "\t", "    "))
	}
	return slices.Clip(lines)
}
