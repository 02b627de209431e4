package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/ralph-pool/ralph/internal/neutral"
)

// printer is all of ralph's output. What people and programs asked for goes to standard output; progress, warnings and
// errors go to standard error. It is safe for concurrent use; each call writes whole lines.
type printer struct {
	out, err *checkedWriter
	host     Host
	terminal bool // standard error is one, which somebody reads
	color    bool // of standard output
	errColor bool // of standard error
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
	wanted := p.host.getenv("NO_COLOR") == "" && p.host.getenv("TERM") != "dumb"
	on := func(stream any) bool {
		return color == "always" || color != "never" && wanted && isTerminal(stream)
	}
	p.color, p.errColor = on(p.host.Stdout), on(p.host.Stderr)
}

// isTerminal reports whether what is read or written is a person at a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// helpWidth is the width of text that is wrapped wherever it goes: COLUMNS, else the terminal's, else 80. Longer lines than 120
// are hard to read.
func (p *printer) helpWidth() int {
	width, _ := strconv.Atoi(p.host.getenv("COLUMNS"))
	return min(max(cmp.Or(max(width, 0), p.width(), 80), 40), 120)
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
	return cmp.Or(width, 80) // some terminals do not know theirs
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
	_, _ = fmt.Fprintf(p.err, "ralph: %s %s\n", p.paintErr(yellow, "warning:"), cleanLine(message))
}

// prompt prints a part of a question, as it is.
func (p *printer) prompt(text string) { _, _ = io.WriteString(p.err, text) }

// json prints one value as JSON.
func (p *printer) json(v any) error { return writeJSON(p.out, v, "  ") }

// writeJSON writes one value. What a terminal obeys or hides is escaped, because people look at JSON, too.
func writeJSON(to io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := to.Write(escapeJSON(b.Bytes()))
	return err
}

// escapeJSON writes control characters and those that cannot be seen as JSON's escapes. Valid JSON has them in strings only.
func escapeJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r == '\n' || r != '\u200d' && !unicode.IsControl(r) && !neutral.Invisible(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
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
	if p.quiet && problem.Told {
		return problem.Status
	}
	if asJSON {
		_ = writeJSON(p.err, map[string]any{"error": problem}, "")
		return problem.Status
	}
	for line := range strings.Lines(problem.Message) {
		_, _ = fmt.Fprintf(p.err, "%s %s\n", p.paintErr(red, "ralph:"), cleanLine(strings.TrimSuffix(line, "\n")))
	}
	if problem.Hint != "" {
		_, _ = fmt.Fprintf(p.err, "%s %s\n", p.paintErr(red, "ralph:"), cleanLine(problem.Hint))
	}
	return problem.Status
}

// checkedWriter keeps the first error and lets one line through at a time. A pipe that nobody reads any more is no error:
// what is written from then on is taken and dropped.
type checkedWriter struct {
	unread chan struct{} // closed when nobody reads any more
	mu     sync.Mutex
	w      io.Writer // guarded by mu; nil when nobody reads any more
	first  error     // guarded by mu
	via    io.Writer // guarded by mu; what is written goes there instead; nil: nowhere else
}

func newCheckedWriter(w io.Writer) *checkedWriter {
	return &checkedWriter{w: w, unread: make(chan struct{})}
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w == nil {
		return len(b), nil
	}
	n, to := len(b), c.w
	if c.via != nil {
		to = c.via
	}
	_, err := to.Write(b)
	switch {
	case errors.Is(err, syscall.EPIPE):
		c.w = nil
		close(c.unread)
		return len(b), nil
	case err != nil && c.first == nil:
		c.first = err
	}
	if err != nil {
		n = 0
	}
	return n, err
}

// divert sends what is written somewhere else; nil ends that.
func (c *checkedWriter) divert(to io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.via = to
}

func (c *checkedWriter) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}
