package screen

import (
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/tui"
)

// Wrap wraps text at width. Consecutive lines form one paragraph; an indented line is a paragraph of its own.
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

// Wrapped wraps a line on a terminal, with this indentation of further lines.
func (p *Printer) Wrapped(line string, indent int) string {
	if p.Width() == 0 {
		return line
	}
	return WrapLine(line, indent, p.Width())
}

// Hang prepares text for standard output: all lines but the first are indented. The first one begins at column used. On a terminal it
// wraps lines that are too long, without changing their words.
func (p *Printer) Hang(text string, used, indent int) string {
	return hang(text, used, indent, p.Width())
}

// HangErr wraps a line for standard error, if that is a terminal. It does not break text between backquotes, so that a command can be
// copied.
func (p *Printer) HangErr(line string, indent int) string {
	if !p.Terminal {
		return line
	}
	return strings.ReplaceAll(hang(quoted(line), 0, indent, columns(p.stderr)), joint, " ")
}

func hang(text string, used, indent, width int) string {
	if width > 0 {
		indent = min(indent, width/3)
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i > 0 {
			line, used = strings.Repeat(" ", indent)+line, 0
		}
		if width > 0 {
			line = tui.Hang(line, used, indent, width)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// WrapLine wraps a line between words and indents the further lines. It keeps the blanks at the beginning of the line, up to the
// indentation.
func WrapLine(line string, indent, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return strings.TrimRight(line, " ")
	}
	head := string(runes[:min(indent, len(runes))])
	return head + flow(strings.Fields(string(runes[len([]rune(head)):])), indent, width)
}

// flow joins words into lines. The first line has begun at column indent, to which the others are indented. A word that is
// too long for that begins a line with less indentation.
func flow(words []string, indent, width int) string {
	var out strings.Builder
	used := indent
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		switch {
		case indent+n > width && indent > len(Below): // the next word begins a new line as well
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
