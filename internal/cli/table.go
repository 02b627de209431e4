package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table prints rows in columns. Cells are cleaned, so they may hold anything; colour would break the columns. On a
// terminal the last column goes on below itself where the terminal ends; a program gets each row as one line.
func (p *printer) table(rows [][]string) { table(p.out, rows, p.width()) }

const (
	// leastCell is how narrow the last column may become; where it would have less it stands below the others.
	leastCell = 16
	// widest is how far one long cell moves the cells of the other rows.
	widest = 60
	// below is the indentation of what stands on a line of its own.
	below = "  "
	// joint is the blank inside what is typed as it stands.
	joint = "\u00a0"
)

// typed marks a command in a cell: it is broken nowhere.
func typed(command string) string { return strings.ReplaceAll(command, " ", joint) }

// quoted marks what stands between backquotes as typed.
func quoted(cell string) string {
	parts := strings.Split(cell, "`")
	for i := 1; i < len(parts)-1; i += 2 {
		parts[i] = typed(parts[i])
	}
	return strings.Join(parts, "`")
}

// table fits lines into the width, in characters, by their last cells; 0 is any width. Of what cannot be broken too long
// words stick out.
func table(w io.Writer, rows [][]string, width int) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], min(widest, utf8.RuneCountInString(cleanLine(cell))))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = cleanLine(cell)
			if i == len(row)-1 && width > 0 {
				cell = fit(cell, utf8.RuneCountInString(line.String()), width)
			}
			fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
		}
		for part := range strings.SplitSeq(line.String(), "\n") {
			_, _ = fmt.Fprintln(w, strings.TrimRight(strings.ReplaceAll(part, joint, " "), " "))
		}
	}
}

// fit breaks a cell that begins at a column into lines that end before the width.
func fit(cell string, at, width int) string {
	length, room := utf8.RuneCountInString(cell), width-at
	if length <= room {
		return cell
	}
	start := "\n" + strings.Repeat(" ", at)
	var out strings.Builder
	if room < leastCell {
		start, room = "\n"+below, max(leastCell, width-len(below))
		out.WriteString(start)
	}
	used := 0
	for word := range strings.SplitSeq(quoted(cell), " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case n > room: // the next word begins a line too
			out.WriteString("\n" + below + word)
			used = room
			continue
		case used > 0 && used+1+n > room:
			out.WriteString(start)
			used = 0
		case used > 0:
			out.WriteString(" ")
			used++
		}
		out.WriteString(word)
		used += n
	}
	return out.String()
}
