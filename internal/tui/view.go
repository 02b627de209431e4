// Package tui shows the progress of runs on a terminal: a few lines below all other output, with keys to choose runs and to
// read their logs and diffs. Text printed meanwhile goes above these lines, so that it stays in the terminal's history.
//
// Runs never wait for the terminal: events update a board in memory, printed text waits in a bounded buffer, and the view
// reads both at most ten times a second.
package tui

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/retry"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"github.com/ralph-pool/ralph/pool/journal"
)

const (
	frames     = 10      // maximum per second
	pendingMax = 1 << 20 // bytes of text waiting to be printed; the oldest lines are dropped
)

// Config configures a View. Out and Actions are required.
type Config struct {
	Out   *os.File // a terminal
	In    *os.File // the same terminal; nil: no keys
	Env   []string
	Color bool
	Title string
	Leave string // question before the view is left; empty: none
	Actions
}

// View is a view on a terminal. Its methods are safe for concurrent use. Event and Stop do nothing on a nil View.
type View struct {
	c      Config
	ctx    context.Context //nolint:containedctx // of what the person asks for
	cancel context.CancelCauseFunc

	lifecycle sync.Mutex // held while the view starts or ends

	mu       sync.Mutex
	board    board   // guarded by mu
	changed  bool    // guarded by mu; since the last frame
	pending  []byte  // guarded by mu
	dropped  int     // guarded by mu; lines dropped from pending
	parts    []above // guarded by mu; texts on their way to the terminal
	active   bool    // guarded by mu; the view controls the terminal
	model    model   // guarded by mu; state while the view is suspended
	reflows  bool    // see reflows
	leftChan chan struct{}
	leave    sync.Once
	program  *tea.Program  // guarded by lifecycle
	ended    chan struct{} // guarded by lifecycle; closed when program has ended and the terminal is restored
}

// Start starts a view.
func Start(c Config) *View {
	ctx, cancel := context.WithCancelCause(context.Background())
	v := &View{c: c, ctx: ctx, cancel: cancel, leftChan: make(chan struct{}), changed: true, reflows: reflows(c.Env)}
	v.model = model{Actions: c.Actions, ctx: ctx, title: c.Title, leaveQuestion: c.Leave, paint: newStyles(c.Color)}
	v.Resume()
	return v
}

// Event updates the view. text is the event's log entry; empty: it has none.
func (v *View) Event(project string, e journal.Event, text string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.board.event(project, e, text)
	v.changed = true
}

// Away says since when the runs cannot be read, so that the view marks its rows as old; a zero time: they can be read again.
func (v *View) Away(since time.Time) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.board.away, v.changed = since, true
}

// Write prints whole lines above the view. While the view is suspended it writes directly to the terminal.
func (v *View) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.active {
		return v.c.Out.Write(b)
	}
	v.pending = append(v.pending, b...)
	for len(v.pending) > pendingMax {
		_, rest, found := bytes.Cut(v.pending, []byte("\n"))
		if !found {
			rest = nil
		}
		v.pending = rest
		v.dropped++
	}
	return len(b), nil
}

// takePending returns the pending text and clears it. The caller holds mu.
func (v *View) takePending() string {
	text := string(v.pending)
	if v.dropped > 0 {
		text = strconv.Itoa(v.dropped) + " lines were skipped: the terminal was too slow\n" + text
	}
	v.pending, v.dropped = nil, 0
	return text
}

// Left returns a channel that is closed when the user leaves the view.
func (v *View) Left() <-chan struct{} { return v.leftChan }

// Stop ends the view, prints pending text and restores the terminal. It may be called repeatedly.
func (v *View) Stop() {
	if v != nil {
		v.cancel(nil)
		v.Suspend()
		v.leave.Do(func() { close(v.leftChan) })
	}
}

// Suspend ends the view until Resume.
func (v *View) Suspend() {
	v.lifecycle.Lock()
	defer v.lifecycle.Unlock()
	if v.program != nil {
		v.program.Send(quit{})
		<-v.ended
		v.program = nil
	}
}

// Resume starts the view again, unless it is running, the user has left it, or this process is in the background.
func (v *View) Resume() {
	v.lifecycle.Lock()
	defer v.lifecycle.Unlock()
	select {
	case <-v.leftChan:
		return
	case <-v.ctx.Done():
		return
	default:
	}
	if v.program != nil || !foreground(v.c.Out) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	profile := colorprofile.ASCII
	if v.c.Color {
		profile = colorprofile.ANSI
	}
	v.program = tea.NewProgram(v.model, tea.WithInput(nil), tea.WithOutput(v.c.Out), tea.WithEnvironment(v.c.Env), tea.WithFPS(frames),
		tea.WithColorProfile(profile), tea.WithoutSignalHandler(), tea.WithFilter(v.filter))
	v.ended, v.active = make(chan struct{}), true
	go v.run(v.program, v.ended)
}

// above is text to print above the view in one step.
type above string

// filter sees each message before the program does. It prints text in any case. When the terminal has become narrower, and
// so has wrapped the lines of the view, it moves the cursor up to where the view began.
func (v *View) filter(m tea.Model, msg tea.Msg) tea.Msg {
	switch msg := msg.(type) {
	case above:
		v.mu.Lock()
		defer v.mu.Unlock()
		v.parts = v.parts[1:]
		return tea.Println(string(msg))()
	case tea.WindowSizeMsg:
		if now, ok := m.(model); ok && v.reflows {
			if n := extraLines(now.content, msg.Width); n > 0 {
				_, _ = io.WriteString(v.c.Out, ansi.CursorUp(n))
			}
		}
	}
	return msg
}

// run shows the view until it ends for any reason, then restores the terminal.
func (v *View) run(p *tea.Program, over chan struct{}) {
	defer close(over)
	ctx, cancel := context.WithCancelCause(v.ctx)
	var beside sync.WaitGroup
	stopKeys := v.readKeys(p, &beside)
	beside.Go(func() { v.feed(ctx, p) })
	final, err := p.Run()
	cancel(nil)
	stopKeys()
	beside.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.active = false
	var rest strings.Builder
	for _, part := range v.parts {
		rest.WriteString(string(part) + "\n")
	}
	v.parts = nil
	_, _ = io.WriteString(v.c.Out, rest.String()+v.takePending())
	m, _ := final.(model)
	if err != nil || m.left {
		v.leave.Do(func() { close(v.leftChan) })
	}
	m.finished = false
	v.model = m
}

// feed sends news to the view.
func (v *View) feed(ctx context.Context, p *tea.Program) {
	shown := int64(0)
	for {
		now := time.Now()
		v.mu.Lock()
		changed := v.changed || now.Unix() != shown
		parts := v.cut(v.takePending())
		v.parts = append(v.parts, parts...) // until filter has seen them
		f := frame{now: now}
		if changed {
			v.changed, shown, f.board = false, now.Unix(), v.board.snapshot()
		}
		v.mu.Unlock()
		if changed {
			p.Send(f)
		}
		for _, part := range parts {
			p.Send(part)
		}
		if retry.Sleep(ctx, time.Second/frames) != nil {
			return
		}
	}
}

// rowsMax is the maximum number of terminal rows of a line printed above the view. The view leaves that many rows free.
const rowsMax = 3

// cut splits text into parts that are printed in one step.
func (v *View) cut(text string) (parts []above) {
	if text == "" {
		return nil
	}
	columns, _, err := term.GetSize(int(v.c.Out.Fd()))
	if err != nil || columns < 1 {
		columns = 80
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		for _, row := range rowsOf(line, columns) {
			parts = append(parts, above(row))
		}
	}
	return parts
}

// rowsOf splits a long line between words. A line with a word that is too long is left for the terminal to wrap, so that it
// can be copied in one piece, except very long lines and those about whose width terminals disagree.
func rowsOf(line string, columns int) []string {
	n := width(line)
	long := slices.ContainsFunc(strings.Fields(line), func(word string) bool { return width(word) > columns })
	if n <= columns || long && n <= rowsMax*columns && n == utf8.RuneCountInString(ansi.Strip(line)) {
		return []string{line}
	}
	return strings.Split(ansi.WrapWc(line, columns, ""), "\n")
}

// readKeys sends keys to the program until stop is called, which also restores the terminal's mode.
func (v *View) readKeys(p *tea.Program, beside *sync.WaitGroup) (stop func()) {
	if v.c.In == nil {
		return func() {}
	}
	undo, err := setKeyMode(v.c.In)
	if err != nil {
		return func() {}
	}
	in, err := cancelreader.NewReader(v.c.In)
	if err != nil {
		undo()
		return func() {}
	}
	done := make(chan struct{})
	beside.Go(func() {
		defer close(done)
		buf := make([]byte, 256)
		for {
			n, err := in.Read(buf)
			for _, k := range decode(buf[:n]) {
				p.Send(k)
			}
			if err != nil || n == 0 { // the view ended, or the terminal is gone
				return
			}
		}
	})
	return func() {
		if in.Cancel() {
			<-done
		}
		_ = in.Close()
		if foreground(v.c.In) {
			undo()
		}
	}
}
