package screen

import (
	"strings"
	"unicode/utf8"
)

// Wrap fits text into the width. Lines that follow each other are one paragraph; an indented line stands for itself.
func Wrap(text string, width int) string {
	var out []string
	paragraph := ""
	end := func() {
		if paragraph != "" {
			out = append(out, WrapLine(paragraph, 0, width))
		}
		paragraph = ""
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch rest := strings.TrimLeft(line, " "); {
		case rest == "" || len(rest) < len(line):
			end()
			at := len(line) - len(rest)
			if gap := strings.Index(rest, "  "); gap >= 0 { // a column of names
				at = len(line) - len(strings.TrimLeft(rest[gap:], " "))
			}
			out = append(out, WrapLine(line, at, width))
		case strings.HasSuffix(line, ":"):
			paragraph = strings.TrimSpace(paragraph + " " + line)
			end()
		default:
			paragraph = strings.TrimSpace(paragraph + " " + line)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// Wrapped is a line for people, broken between words on a terminal.
func (p *Printer) Wrapped(line string, indent int) string {
	if p.Width() == 0 {
		return line
	}
	return WrapLine(line, indent, p.Width())
}

// WrapLine breaks a line between words; what follows is indented. The blanks that the line begins with, up to the
// indentation, stay.
func WrapLine(line string, indent, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return strings.TrimRight(line, " ")
	}
	head := string(runes[:min(indent, len(runes))])
	return head + flow(strings.Fields(string(runes[len([]rune(head)):])), indent, width)
}

// flow puts words into lines, the first of which has begun at the column that the others are indented to. A word that is too long
// for that begins a line further to the left.
func flow(words []string, indent, width int) string {
	var out strings.Builder
	used := indent
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		switch {
		case indent+n > width && indent > len(Below): // the next word begins a line, too
			out.WriteString("\n" + Below + word)
			used = width
			continue
		case i > 0 && used+1+n > width:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		case i > 0:
			out.WriteString(" ")
			used++
		}
		out.WriteString(word)
		used += n
	}
	return out.String()
}
