// Package screen is what people see of ralph: results and notes, on a terminal or in a pipe, with colours, tables and lines
// that fit. What agents and issues say is made safe to print here.
package screen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/neutral"
)

// Printer is all of ralph's output. What people and programs asked for goes to standard output; progress, warnings and
// errors go to standard error. It is safe for concurrent use; each call writes whole lines.
type Printer struct {
	Out, Err *Writer // for results; for all else
	stdout   io.Writer
	env      []string // "K=V"
	Terminal bool     // standard error is one, which somebody reads
	color    bool     // of standard output
	ErrColor bool     // of standard error
	Quiet    bool     // results and errors only
	Verbose  bool     // more of what goes on
	once     sync.Map // what WarnOnce has printed

	log *slog.Logger // nil: people read standard error
}

// New prints to these two, in an environment that says what a terminal can show.
func New(stdout, stderr io.Writer, env []string) *Printer {
	p := &Printer{Out: newWriter(stdout), Err: newWriter(stderr), stdout: stdout, env: env, Terminal: IsTerminal(stderr)}
	p.Configure("auto", false, false)
	return p
}

// Configure applies what people want: colours always, never or where there is a terminal (auto), and how much is printed.
func (p *Printer) Configure(color string, quiet, verbose bool) {
	p.Quiet, p.Verbose = quiet, verbose
	wanted := config.Getenv(p.env, "NO_COLOR") == "" && config.Getenv(p.env, "TERM") != "dumb"
	on := func(terminal bool) bool {
		return color == "always" || color != "never" && wanted && terminal
	}
	p.color, p.ErrColor = on(IsTerminal(p.stdout)), on(p.Terminal)
}

// Into makes everything on standard error, but questions, records of a log that programs read. Call it before others print.
func (p *Printer) Into(log *slog.Logger) { p.log, p.ErrColor, p.Terminal = log, false, false }

// IsTerminal reports whether what is read or written is a person at a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// HelpWidth is the width of text that is wrapped wherever it goes: COLUMNS, else the terminal's, else 80. Longer lines than 120
// are hard to read.
func (p *Printer) HelpWidth() int {
	width, _ := strconv.Atoi(config.Getenv(p.env, "COLUMNS"))
	return min(max(cmp.Or(max(width, 0), p.Width(), 80), 40), 120)
}

// Width is how many characters a line of standard output has room for; 0 if it is no terminal.
func (p *Printer) Width() int {
	f, ok := p.stdout.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return cmp.Or(width, 80) // some terminals do not know theirs
}

// Printf prints a result. Hostile text in args goes through Clean or CleanLine first.
func (p *Printer) Printf(format string, args ...any) { _, _ = fmt.Fprintf(p.Out, format, args...) }

// Note prints progress for people, unless they asked for quiet.
func (p *Printer) Note(format string, args ...any) {
	switch {
	case p.Quiet:
	case p.log != nil:
		p.log.Info(CleanLine(fmt.Sprintf(format, args...)))
	default:
		_, _ = fmt.Fprintf(p.Err, format+"\n", args...)
	}
}

// Brief cuts what a person at a terminal need not read to the end; a log gets all of it.
func (p *Printer) Brief(text string, n int) string {
	if !p.Terminal {
		return text
	}
	return Shorten(text, n)
}

// Warn prints what people should know although ralph goes on.
func (p *Printer) Warn(message string) {
	if p.log != nil {
		p.log.Warn(CleanLine(message))
		return
	}
	_, _ = fmt.Fprintf(p.Err, "ralph: %s %s\n", p.PaintErr(Yellow, "warning:"), CleanLine(message))
}

// Fail prints a line about what ends ralph.
func (p *Printer) Fail(line string) {
	if p.log != nil {
		p.log.Error(CleanLine(line))
		return
	}
	_, _ = fmt.Fprintf(p.Err, "%s %s\n", p.PaintErr(Red, "ralph:"), CleanLine(line))
}

// WarnOnce is Warn for what is found again and again, such as whenever a service tries to open a project.
func (p *Printer) WarnOnce(message string) {
	if _, said := p.once.LoadOrStore(message, true); !said {
		p.Warn(message)
	}
}

// Prompt prints a part of a question, as it is.
func (p *Printer) Prompt(text string) { _, _ = io.WriteString(p.Err, text) }

// JSON prints one value as JSON.
func (p *Printer) JSON(v any) error { return WriteJSON(p.Out, v, "  ") }

// WriteJSON writes one value. What a terminal obeys or hides is escaped, because people look at JSON, too.
func WriteJSON(to io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := to.Write(EscapeJSON(b.Bytes()))
	return err
}

// EscapeJSON writes control characters and those that cannot be seen as JSON's escapes. Valid JSON has them in strings only.
func EscapeJSON(text []byte) []byte {
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

// Failed is the first error of writing standard output, such as a full disk: a result nobody got is no success.
func (p *Printer) Failed() error {
	if err := p.Out.failed(); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

// Writer keeps the first error and lets one line through at a time. A pipe that nobody reads any more is no error:
// what is written from then on is taken and dropped.
type Writer struct {
	Unread chan struct{} // closed when nobody reads any more
	mu     sync.Mutex
	w      io.Writer // guarded by mu; nil when nobody reads any more
	first  error     // guarded by mu
	via    io.Writer // guarded by mu; what is written goes there instead; nil: nowhere else
}

func newWriter(w io.Writer) *Writer {
	return &Writer{w: w, Unread: make(chan struct{})}
}

func (c *Writer) Write(b []byte) (int, error) {
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
		close(c.Unread)
		return len(b), nil
	case err != nil && c.first == nil:
		c.first = err
	}
	if err != nil {
		n = 0
	}
	return n, err
}

// Divert sends what is written somewhere else; nil ends that.
func (c *Writer) Divert(to io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.via = to
}

func (c *Writer) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}
