// Package screen prints ralph's output: results and notes, on a terminal or in a pipe, with colours, tables and wrapped
// lines. It also cleans text of agents and issues for printing.
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

// Printer prints all of ralph's output: results on standard output; progress, warnings and errors on standard error. It is
// safe for concurrent use, and each call writes whole lines.
type Printer struct {
	Out, Err *Writer // Out for results, Err for everything else
	stdout   io.Writer
	stderr   io.Writer
	env      []string // "K=V"
	Terminal bool     // standard error is a terminal
	color    bool     // on standard output
	ErrColor bool     // on standard error
	Quiet    bool     // print results and errors only
	Verbose  bool     // print more details
	once     sync.Map // the messages of WarnOnce

	log *slog.Logger // nil: print for people
}

// New returns a Printer for these streams. env tells what the terminal can show.
func New(stdout, stderr io.Writer, env []string) *Printer {
	p := &Printer{Out: newWriter(stdout), Err: newWriter(stderr), stdout: stdout, stderr: stderr, env: env, Terminal: IsTerminal(stderr)}
	p.Configure("auto", false, false)
	return p
}

// Configure sets colours (always, never, or auto: on terminals only) and the amount of output.
func (p *Printer) Configure(color string, quiet, verbose bool) {
	p.Quiet, p.Verbose = quiet, verbose
	wanted := config.Getenv(p.env, "NO_COLOR") == "" && config.Getenv(p.env, "TERM") != "dumb"
	on := func(terminal bool) bool {
		return color == "always" || color != "never" && wanted && terminal
	}
	p.color, p.ErrColor = on(IsTerminal(p.stdout)), on(p.Terminal)
}

// Into turns all output on standard error, except questions, into records of a log. Call it before any other output.
func (p *Printer) Into(log *slog.Logger) { p.log, p.ErrColor, p.Terminal = log, false, false }

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// HelpWidth is the width at which help is wrapped, even in a pipe: COLUMNS, else the terminal's, else 80; from 40 to 120, because
// longer lines are hard to read.
func (p *Printer) HelpWidth() int {
	width, _ := strconv.Atoi(config.Getenv(p.env, "COLUMNS"))
	return min(max(cmp.Or(max(width, 0), p.Width(), 80), 40), 120)
}

// Width is the width of standard output in characters, or 0 if it is not a terminal.
func (p *Printer) Width() int { return columns(p.stdout) }

func columns(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return cmp.Or(width, 80) // some terminals report 0
}

// Printf prints a result. Clean untrusted text in args with Clean or CleanLine first.
func (p *Printer) Printf(format string, args ...any) { _, _ = fmt.Fprintf(p.Out, format, args...) }

// Note prints progress, unless --quiet was given.
func (p *Printer) Note(format string, args ...any) {
	switch {
	case p.Quiet:
	case p.log != nil:
		p.log.Info(CleanLine(fmt.Sprintf(format, args...)))
	default:
		_, _ = fmt.Fprintf(p.Err, format+"\n", args...)
	}
}

// Brief shortens a text to n characters on a terminal; a log gets all of it.
func (p *Printer) Brief(text string, n int) string {
	if !p.Terminal {
		return text
	}
	return Shorten(text, n)
}

// Warn prints a warning.
func (p *Printer) Warn(message string) {
	if p.log != nil {
		p.log.Warn(CleanLine(message))
		return
	}
	_, _ = fmt.Fprintf(p.Err, "ralph: %s %s\n", p.PaintErr(Yellow, "warning:"), CleanLine(message))
}

// Fail prints a line of the error with which ralph ends.
func (p *Printer) Fail(line string) {
	if p.log != nil {
		p.log.Error(CleanLine(line))
		return
	}
	_, _ = fmt.Fprintf(p.Err, "%s %s\n", p.PaintErr(Red, "ralph:"), CleanLine(line))
}

// WarnOnce prints a warning only the first time, for warnings that repeat, such as at each attempt to open a project.
func (p *Printer) WarnOnce(message string) {
	if _, said := p.once.LoadOrStore(message, true); !said {
		p.Warn(message)
	}
}

// Prompt prints a part of a question, unchanged.
func (p *Printer) Prompt(text string) { _, _ = io.WriteString(p.Err, text) }

// JSON prints a value as indented JSON.
func (p *Printer) JSON(v any) error { return WriteJSON(p.Out, v, "  ") }

// WriteJSON writes a value as JSON. It escapes control and invisible characters, because people read JSON on terminals, too.
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

// EscapeJSON replaces control and invisible characters by JSON escapes. Valid JSON contains them in strings only.
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

// Failed returns the first error of writing to standard output, such as a full disk: a lost result is not a success.
func (p *Printer) Failed() error {
	if err := p.Out.failed(); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

// Writer serialises writes and stores the first error. A pipe without a reader is not an error: Writer drops all output after
// that.
type Writer struct {
	Unread chan struct{} // closed when the pipe has no reader any more
	mu     sync.Mutex
	w      io.Writer // guarded by mu; nil after Unread was closed
	first  error     // guarded by mu
	via    io.Writer // guarded by mu; receives the output in place of w, unless it is nil
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
	to := cmp.Or(c.via, c.w)
	_, err := to.Write(b)
	switch {
	case err == nil:
		return len(b), nil
	case errors.Is(err, syscall.EPIPE):
		c.w = nil
		close(c.Unread)
		return len(b), nil
	}
	c.first = cmp.Or(c.first, err)
	return 0, err
}

// Divert sends further output to another writer, or with nil to the original one again.
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
