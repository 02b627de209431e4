package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table prints rows in columns; the first row has the headings. It cleans the cells. On a terminal it cuts cells that do not
// fit, with an ellipsis, and wraps a last column of reasons; otherwise each row is one full line.
func (p *Printer) Table(rows [][]string) { table(p.Out, rows, p.Width(), p.Paint) }

const (
	// leastName is the minimum width of the column with names.
	leastName = 20
	// leastCell is the minimum width of a wrapped last column; with less room its cells go below the row.
	leastCell = 16
	// leastCut is the minimum width of other columns.
	leastCut = 6
	// widest is the maximum width that one long cell gives its column. piped is the same without a terminal, where cells are
	// not cut; names, such as the keys of issues, may be longer, because other columns follow them.
	widest, piped = 60, 40
	// Below is the indentation of text on a line of its own.
	Below = "  "
	// joint replaces blanks that must not be broken.
	joint = "\u00a0"
)

// typed makes a command in a cell unbreakable.
func typed(command string) string { return strings.ReplaceAll(command, " ", joint) }

// quoted makes text between backquotes unbreakable.
func quoted(cell string) string {
	parts := strings.Split(cell, "`")
	for i := 1; i < len(parts)-1; i += 2 {
		parts[i] = typed(parts[i])
	}
	return strings.Join(parts, "`")
}

// rank is the order in which columns are cut: free text first (0), then names, and states, times and numbers last.
func rank(heading string) int {
	switch heading {
	case "TITLE", "VALUE", "FROM", "WHERE":
		return 0
	case "ISSUE", "KEY", "WHAT":
		return 1
	}
	return 2
}

// details lists the columns that are dropped, in this order, when cutting the others is not enough.
func details() []string {
	return []string{"TITLE", "WHERE", "FROM", "TOOK", "COMMITS", "ATTEMPT", "STARTED", "CACHE", "UNKNOWN", "OUT", "IN"}
}

func table(w io.Writer, rows [][]string, width int, paint func(Style, string) string) {
	last := len(rows[0]) - 1
	wraps := strings.HasPrefix(rows[0][last], "WHY")
	widths := Columns(rows, width, wraps)
	for _, row := range rows {
		var line strings.Builder
		at := 0
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			cell = CleanLine(cell)
			colour := stateColour(cell)
			switch {
			case width == 0:
			case i == last && wraps:
				cell = fit(cell, at, width)
			default:
				cell = Shorten(cell, widths[i])
			}
			pad := max(0, widths[i]-utf8.RuneCountInString(cell))
			if h := rows[0][i]; (h == "STATE" || h == "OUTCOME") && cell != h {
				cell = paint(colour, cell)
			}
			line.WriteString(cell + strings.Repeat(" ", pad+2))
			at += widths[i] + 2
		}
		for part := range strings.SplitSeq(line.String(), "\n") {
			_, _ = fmt.Fprintln(w, strings.TrimRight(strings.ReplaceAll(part, joint, " "), " "))
		}
	}
}

// Columns returns the widths of the columns; 0 drops a column. On a narrow terminal it cuts columns by rank, and of one rank
// the widest first; it drops details before it cuts states, times and numbers. A last column that wraps takes the remaining
// width.
func Columns(rows [][]string, width int, wraps bool) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			most := widest
			if width == 0 && rank(rows[0][i]) != 1 {
				most = piped
			}
			widths[i] = max(widths[i], min(most, utf8.RuneCountInString(CleanLine(cell))))
		}
	}
	last := len(widths) - 1
	if width == 0 {
		return widths
	}
	over := 2*last - width
	for i, n := range widths {
		if i == last && wraps {
			n = min(n, leastCell)
		}
		over += n
	}
	for turn, least := range []int{leastCut, leastName, leastCut} {
		for _, name := range details() {
			if i := slices.Index(rows[0], name); turn == 2 && over > 0 && i > 0 {
				over -= widths[i] + 2
				widths[i] = 0
			}
		}
		for ; over > 0; over-- {
			at := -1
			for i, n := range widths {
				if rank(rows[0][i]) == turn && n > least && (at < 0 || n > widths[at]) && !(i == last && wraps) {
					at = i
				}
			}
			if at < 0 {
				break
			}
			widths[at]--
		}
	}
	return widths
}

// WithoutUnknown removes columns with these headings in which all cells are "-".
func WithoutUnknown(rows [][]string, headings ...string) [][]string {
	for i := len(rows[0]) - 1; i >= 0; i-- {
		says := func(row []string) bool { return row[i] != "-" }
		if slices.Contains(headings, rows[0][i]) && !slices.ContainsFunc(rows[1:], says) {
			for n := range rows {
				rows[n] = slices.Delete(rows[n], i, i+1)
			}
		}
	}
	return rows
}

// stateColour returns the colour of a state or an outcome.
func stateColour(state string) Style {
	word, _, _ := strings.Cut(state, " ")
	switch word {
	case "succeeded", "merged", "removed":
		return Green
	case "failed", "gate-failed", "policy-blocked", "over-budget", "died", "broken":
		return Red
	case "running", "no-change", "superseded", "kept":
		return Dim
	}
	return Yellow
}

// fit wraps a cell that begins at column at into lines that end before width.
func fit(cell string, at, width int) string {
	if utf8.RuneCountInString(cell) <= width-at {
		return cell
	}
	words := strings.Split(quoted(cell), " ")
	if width-at < leastCell {
		return "\n" + Below + flow(words, len(Below), max(len(Below)+leastCell, width))
	}
	return flow(words, at, width)
}
