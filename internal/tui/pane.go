package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// diffMax is the maximum number of lines of a diff.
const diffMax = 5000

// pane shows lines of a run below it. It is immutable.
type pane struct {
	run      Run
	diff     bool // shows the diff of the run's commits; otherwise its log
	isReason bool // shows the reason why there is no diff
	lines    []string
	top      int  // index of the first visible line
	follow   bool // always show the last lines
}

func (p pane) with(lines []string) *pane {
	p.lines = lines
	return &p
}

// press scrolls. room is the number of visible lines. It returns false for other keys.
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

// visibleLines returns the visible lines: at most room lines of at most columns each. Logs and reasons are wrapped, so that nothing is lost.
func (p pane) visibleLines(room, columns int, s styles) []string {
	from := min(p.top, max(0, len(p.lines)-room))
	if p.follow {
		from = max(0, len(p.lines)-room)
	}
	lines := p.lines[from:min(from+room, len(p.lines))]
	var out []string
	for _, line := range lines {
		if p.isReason {
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
