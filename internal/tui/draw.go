package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/ralph-pool/ralph/agents"
)

// styles use the terminal's sixteen theme colours, so that the view works on light and dark backgrounds.
type styles struct {
	name, phase, faint, good, bad, hunk, ask lipgloss.Style
}

func newStyles(color bool) styles {
	s := lipgloss.NewStyle()
	if !color {
		return styles{s, s, s, s, s, s, s}
	}
	return styles{
		name: s.Bold(true), phase: s.Foreground(lipgloss.Cyan), faint: s.Faint(true), good: s.Foreground(lipgloss.Green),
		bad: s.Foreground(lipgloss.Red), hunk: s.Foreground(lipgloss.Cyan), ask: s.Bold(true).Foreground(lipgloss.Yellow),
	}
}

// diff colours a line of a diff.
func (s styles) diff(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
		return s.faint.Render(line)
	case strings.HasPrefix(line, "+"):
		return s.good.Render(line)
	case strings.HasPrefix(line, "-"):
		return s.bad.Render(line)
	case strings.HasPrefix(line, "@@"):
		return s.hunk.Render(line)
	}
	return line
}

// logged colours a line of a log, which starts with the time.
func (s styles) logged(line string) string {
	n := min(stamp, len(line))
	return s.faint.Render(line[:n]) + line[n:]
}

// Terminal widths, in columns, from which the view shows more.
const (
	wide   = 60  // the last action, on the run's line
	widest = 120 // the title, too
)

// lines returns the view as it fits the terminal, followed by an empty line for the cursor.
func (m model) lines() []string {
	if m.finished || m.width == 0 || m.now.IsZero() {
		return nil
	}
	out := []string{m.head()}
	switch {
	case m.pane != nil:
		out = append(out, m.paneLines()...)
	case len(m.board.rows) == 0:
		out = append(out, m.paint.faint.Render(cut("  nothing is being worked now", m.columns())))
	default:
		out = append(out, m.table()...)
	}
	out = append(out, m.foot()...)
	return append(out, "")
}

// columns returns the usable width: the last column stays free, because some terminals wrap there.
func (m model) columns() int { return max(m.width-1, 10) }

// rule returns a horizontal line with text at both ends.
func (m model) rule(text, end string) string {
	n := m.columns()
	if width(text)+width(end)+9 > n {
		end = ""
	}
	text = cut(text, max(n-6, 1))
	fill := n - 4 - width(text)
	tail := ""
	if end != "" {
		tail = " " + end + " ──"
		fill -= width(tail)
	}
	return m.paint.faint.Render("── ") + text + m.paint.faint.Render(" "+strings.Repeat("─", max(fill, 0))+tail)
}

// head returns the summary line.
func (m model) head() string {
	b := m.board
	parts := []string{fmt.Sprintf("%d working", len(b.rows))}
	if !b.away.IsZero() {
		parts[0] = m.paint.bad.Render(fmt.Sprintf("%d working at %s", len(b.rows), b.away.Local().Format(time.TimeOnly)))
	}
	if b.succeeded > 0 {
		parts = append(parts, m.paint.good.Render(fmt.Sprintf("%d succeeded", b.succeeded)))
	}
	if n := b.ended - b.succeeded; n > 0 {
		parts = append(parts, m.paint.bad.Render(fmt.Sprintf("%d unsuccessful", n)))
	}
	if sum := b.total(); sum != (agents.Usage{}) {
		parts = append(parts, m.Cost(sum))
	}
	if m.leaveQuestion != "" { // the view has existed since the runs started
		parts = append(parts, elapsed(m.now.Sub(m.began)))
	}
	if m.width >= wide {
		parts = append([]string{m.paint.name.Render(m.title)}, parts...)
	}
	return m.rule(strings.Join(parts, m.paint.faint.Render(" · ")), "? keys")
}

// grid has the widths of the columns.
type grid struct{ name, phase, time, cost, title, last int }

func (m model) grid() grid {
	g := grid{phase: 8, time: 6} // wide enough for nearly all values, so that columns rarely move
	if m.width >= wide {
		g.phase = 11
	}
	for _, r := range m.board.rows {
		g.name = max(g.name, width(plain(m.Name(r.Run))))
		g.phase = max(g.phase, width(m.phase(r)))
		g.time = max(g.time, width(m.elapsed(r)))
		g.cost = max(g.cost, width(m.cost(r)))
		g.title = max(g.title, width(plain(r.title)))
	}
	n := m.columns()
	g.name = min(g.name, max(8, n*3/10))
	free := n - 2 - g.name - 2 - g.phase - 2 - g.time
	if g.cost > 0 {
		free -= 2 + g.cost
	}
	if m.width < widest {
		g.title = 0
	} else {
		g.title = min(g.title, free*4/10)
	}
	if g.title > 0 {
		free -= 2 + g.title
	}
	if m.width >= wide {
		g.last = free - 2
	}
	return g
}

func (m model) phase(r row) string {
	if m.width < wide {
		return strings.Replace(r.phase, "iteration", "iter", 1)
	}
	return r.phase
}

func (m model) elapsed(r row) string {
	if away := m.board.away; !away.IsZero() {
		return elapsed(away.Sub(r.started))
	}
	return elapsed(m.now.Sub(r.started))
}

func (m model) cost(r row) string {
	if r.used == (agents.Usage{}) {
		return ""
	}
	return m.Cost(r.used)
}

// table returns the lines of the runs: as many as fit into half of the terminal, including the chosen one.
func (m model) table() []string {
	room := max(m.height/2, 3)
	each := 1
	if m.width < wide && 2*len(m.board.rows) <= room {
		each = 2
	}
	rows := m.board.rows
	more := 0
	if len(rows)*each > room {
		fit := room - 1
		at := max(slices.IndexFunc(rows, m.isChosen), 0)
		from := min(max(at-fit/2, 0), len(rows)-fit)
		rows, more = rows[from:from+fit], len(rows)-fit
	}
	g := m.grid()
	var out []string
	for _, r := range rows {
		out = append(out, m.line(r, g))
		if each == 2 && r.last != "" {
			out = append(out, m.paint.faint.Render("    "+cut(plain(r.last), m.columns()-4)))
		}
	}
	if more > 0 {
		out = append(out, m.paint.faint.Render(fmt.Sprintf("  and %d more", more)))
	}
	return out
}

// line returns the line of a run.
func (m model) line(r row, g grid) string {
	mark := "  "
	if m.isChosen(r) {
		mark = "› "
	}
	cells := []string{
		mark + m.paint.name.Render(left(plain(m.Name(r.Run)), g.name)), m.paint.phase.Render(left(m.phase(r), g.phase)), right(m.elapsed(r), g.time),
	}
	if g.cost > 0 {
		cells = append(cells, right(m.cost(r), g.cost))
	}
	if g.title > 0 {
		cells = append(cells, left(plain(r.title), g.title))
	}
	if g.last > 0 && r.last != "" {
		cells = append(cells, m.paint.faint.Render(cut(plain(r.last), g.last)))
	}
	line := strings.Join(cells, "  ")
	if !m.board.away.IsZero() {
		line = m.paint.faint.Render(ansi.Strip(line))
	}
	if width(line) > m.columns() {
		line = cut(line, m.columns())
	}
	return strings.TrimRight(line, " ")
}

// paneRoom is the number of lines left for a pane: without the head, the run, the pane's own head, the empty line, the foot,
// and the rows of a line printed above.
func (m model) paneRoom() int { return max(m.height-4-rowsMax-len(m.foot()), 1) }

func (m model) paneLines() []string {
	var out []string
	if at := slices.IndexFunc(m.board.rows, m.isChosen); at >= 0 {
		out = append(out, m.line(m.board.rows[at], m.grid()))
	}
	what := "log of "
	if m.pane.diff {
		what = "diff of "
	}
	out = append(out, m.rule(what+m.paint.name.Render(plain(m.Name(m.pane.run))), "↑↓ scroll · esc back"))
	return append(out, m.pane.visibleLines(m.paneRoom(), m.columns(), m.paint)...)
}

// foot returns the view's question, note or help.
func (m model) foot() []string {
	var out []string
	if m.help {
		out = m.keys()
	}
	switch {
	case m.ask != nil:
		const answers = " y/n" // never cut off: the user must know how to answer
		out = append(out, m.paint.ask.Render(cut(cut("  "+m.ask.text, m.columns()-len(answers))+answers, m.columns())))
	case m.note != "":
		out = append(out, cut("  "+m.note, m.columns()))
	}
	return out
}

// keys explains the keys, on as many lines as needed.
func (m model) keys() (out []string) {
	line, used := " ", 1
	for _, k := range [][2]string{
		{"↑↓", "choose"}, {"enter", "log"}, {"d", "diff"}, {"s", "stop"}, {"q", "leave the view"},
		{"Ctrl-C", "stop all"}, {"?", "keys"},
	} {
		if k[0] == "Ctrl-C" && m.leaveQuestion == "" {
			k[1] = "leave"
		}
		n := 1 + width(k[0]) + 1 + width(k[1]) + 1
		if used+n > m.columns() {
			out = append(out, line)
			line, used = " ", 1
		}
		line += " " + m.paint.name.Render(k[0]) + " " + m.paint.faint.Render(k[1]) + " "
		used += n
	}
	return append(out, strings.TrimRight(line, " "))
}
