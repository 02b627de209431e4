// Package tui shows on a terminal what runs do while they do it: a few lines below whatever else is printed, which a person
// can move in. Text that is printed meanwhile goes above, so that the terminal keeps all of it.
//
// Nothing that a run does waits for the terminal: events change a board in memory, printed text waits in a bounded buffer, and
// ten times a second at most the view takes what has changed.
package tui

import (
	"bytes"
	"context"
	"io"
	"os"
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
	frames     = 10      // a second, at most
	pendingMax = 1 << 20 // bytes of text that wait to be printed; the oldest lines go
)

// Config is how a view is set up. Out is required, and Actions are.
type Config struct {
	Out   *os.File // a terminal
	In    *os.File // the same; nil: there are no keys
	Env   []string
	Color bool
	Title string
	Leave string // what is asked before the view is left; empty: nothing
	Actions
}

// View is a view on a terminal. Its methods are safe for concurrent use. Of a nil View, Event and Stop do nothing.
type View struct {
	c      Config
	ctx    context.Context //nolint:containedctx // of what the person asks for
	cancel context.CancelCauseFunc

	turn sync.Mutex // held while the view begins or ends

	mu      sync.Mutex
	board   board   // guarded by mu
	changed bool    // guarded by mu; since the last frame
	pending []byte  // guarded by mu
	dropped int     // guarded by mu; lines that did not fit into pending
	parts   []above // guarded by mu; on their way to the terminal
	on      bool    // guarded by mu; the terminal is the view's
	model   model   // guarded by mu; while the view is off
	reflows bool    // the terminal breaks lines that are too long when it becomes narrower
	left    chan struct{}
	leave   sync.Once
	program *tea.Program  // guarded by turn
	over    chan struct{} // guarded by turn; closed when program has ended and the terminal is as before
}

// Start begins a view.
func Start(c Config) *View {
	ctx, cancel := context.WithCancelCause(context.Background())
	v := &View{c: c, ctx: ctx, cancel: cancel, left: make(chan struct{}), changed: true, reflows: reflows(c.Env)}
	v.model = model{Actions: c.Actions, ctx: ctx, title: c.Title, leave: c.Leave, paint: newStyles(c.Color)}
	v.Resume()
	return v
}

// Event learns what a run does. text is the event as a log has it; empty: it has no line.
func (v *View) Event(project string, e journal.Event, text string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.board.event(project, e, text)
	v.changed = true
}

// Write prints whole lines above the view. While there is none, they are just printed.
func (v *View) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.on {
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

// take gives what waits to be printed.
func (v *View) take() string {
	text := string(v.pending)
	if v.dropped > 0 {
		text = strconv.Itoa(v.dropped) + " lines were left out: the terminal was too slow\n" + text
	}
	v.pending, v.dropped = nil, 0
	return text
}

// Left is closed when the person has left the view.
func (v *View) Left() <-chan struct{} { return v.left }

// Stop ends the view, prints what waits and gives the terminal back. It may be called again.
func (v *View) Stop() {
	if v != nil {
		v.cancel(nil)
		v.Suspend()
		v.leave.Do(func() { close(v.left) })
	}
}

// Suspend ends the view until Resume.
func (v *View) Suspend() {
	v.turn.Lock()
	defer v.turn.Unlock()
	if v.program != nil {
		v.program.Send(quit{})
		<-v.over
		v.program = nil
	}
}

// Resume begins the view again, unless it is on, the person has left it, or this process is in the background.
func (v *View) Resume() {
	v.turn.Lock()
	defer v.turn.Unlock()
	select {
	case <-v.left:
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
	v.over, v.on = make(chan struct{}), true
	go v.run(v.program, v.over)
}

// above is text that is printed above the view at once.
type above string

// filter sees each message before the program does. Text that has come so far is printed, whatever happens. When the terminal has
// become narrower, and so has broken the lines of the view, the view is to begin where it began before.
func (v *View) filter(m tea.Model, msg tea.Msg) tea.Msg {
	switch msg := msg.(type) {
	case above:
		v.mu.Lock()
		defer v.mu.Unlock()
		v.parts = v.parts[1:]
		return tea.Println(string(msg))()
	case tea.WindowSizeMsg:
		if now, ok := m.(model); ok && v.reflows {
			if n := broken(now.content, msg.Width); n > 0 {
				_, _ = io.WriteString(v.c.Out, ansi.CursorUp(n))
			}
		}
	}
	return msg
}

// run shows the view until it ends, for whatever reason, and gives the terminal back.
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
	v.on = false
	var rest strings.Builder
	for _, part := range v.parts {
		rest.WriteString(string(part) + "\n")
	}
	v.parts = nil
	_, _ = io.WriteString(v.c.Out, rest.String()+v.take())
	m, _ := final.(model)
	if err != nil || m.left {
		v.leave.Do(func() { close(v.left) })
	}
	m.over = false
	v.model = m
}

// feed sends the view what is new.
func (v *View) feed(ctx context.Context, p *tea.Program) {
	shown := int64(0)
	for {
		now := time.Now()
		v.mu.Lock()
		changed := v.changed || now.Unix() != shown
		parts := v.cut(v.take())
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

// rowsMax is how many rows of the terminal a line may take that is printed above the view. The view leaves room for so many.
const rowsMax = 3

// cut cuts text into what is printed above the view at once. The terminal breaks long lines, but very long ones, and those
// of which terminals do not agree how long they are.
func (v *View) cut(text string) (parts []above) {
	if text == "" {
		return nil
	}
	columns, _, err := term.GetSize(int(v.c.Out.Fd()))
	if err != nil || columns < 1 {
		columns = 80
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		n := width(line)
		if n > columns && (n > rowsMax*columns || n != utf8.RuneCountInString(ansi.Strip(line))) {
			for _, part := range wrap(line, columns) {
				parts = append(parts, above(part))
			}
			continue
		}
		parts = append(parts, above(line))
	}
	return parts
}

// readKeys sends keys to the program until the function that it returns is called; that also gives the terminal back.
func (v *View) readKeys(p *tea.Program, beside *sync.WaitGroup) (stop func()) {
	if v.c.In == nil {
		return func() {}
	}
	undo, err := eachKey(v.c.In)
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
			if err != nil || n == 0 { // the view ends, or the terminal is gone
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
