package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// printer is all of ralph's output. What people and programs asked for goes to standard output; progress, warnings and
// errors go to standard error. It is safe for concurrent use; each call writes whole lines.
type printer struct {
	out, err *checkedWriter
	host     Host
	terminal bool // standard error is one, which somebody reads
	color    bool // of standard error and of tables on a terminal
	quiet    bool
	verbose  bool
}

func newPrinter(h Host) *printer {
	p := &printer{out: newCheckedWriter(h.Stdout), err: newCheckedWriter(h.Stderr), host: h, terminal: isTerminal(h.Stderr)}
	p.configure("auto", false, false)
	return p
}

func (p *printer) configure(color string, quiet, verbose bool) {
	p.quiet, p.verbose = quiet, verbose
	switch color {
	case "always":
		p.color = true
	case "never":
		p.color = false
	default:
		p.color = isTerminal(p.host.Stderr) && isTerminal(p.host.Stdout) &&
			p.host.getenv("NO_COLOR") == "" && p.host.getenv("TERM") != "dumb"
	}
}

// isTerminal reports whether what is read or written is a person at a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many characters a line of standard output has room for; 0 if it is no terminal.
func (p *printer) width() int {
	f, ok := p.host.Stdout.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// printf prints a result. Hostile text in args goes through clean or cleanLine first.
func (p *printer) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// note prints progress for people, unless they asked for quiet.
func (p *printer) note(format string, args ...any) {
	if !p.quiet {
		_, _ = fmt.Fprintf(p.err, format+"\n", args...)
	}
}

// brief cuts what a person at a terminal need not read to the end; a log gets all of it.
func (p *printer) brief(text string, n int) string {
	if !p.terminal {
		return text
	}
	return shorten(text, n)
}

// warn prints what people should know although ralph goes on.
func (p *printer) warn(message string) {
	_, _ = fmt.Fprintf(p.err, "ralph: %s %s\n", p.paint(yellow, "warning:"), cleanLine(message))
}

// prompt prints a part of a question, as it is.
func (p *printer) prompt(text string) { _, _ = io.WriteString(p.err, text) }

// json prints one value as JSON.
func (p *printer) json(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// failed is the first error of writing standard output, such as a full disk: a result nobody got is no success.
func (p *printer) failed() error {
	if err := p.out.failed(); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

// end prints how the command line ended, if it did not end well, and returns the exit status.
func (p *printer) end(problem *problem, asJSON bool) int {
	if problem == nil {
		return exitOK
	}
	if asJSON {
		_ = json.NewEncoder(p.err).Encode(map[string]any{"error": problem})
		return problem.Status
	}
	for line := range strings.Lines(problem.Message) {
		_, _ = fmt.Fprintf(p.err, "%s %s\n", p.paint(red, "ralph:"), cleanLine(strings.TrimSuffix(line, "\n")))
	}
	if problem.Hint != "" {
		_, _ = fmt.Fprintf(p.err, "%s %s\n", p.paint(red, "ralph:"), cleanLine(problem.Hint))
	}
	return problem.Status
}
