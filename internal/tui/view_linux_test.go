package tui

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/ptytest"
	"github.com/ralph-pool/ralph/pool/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pty is a terminal. What is written to it is read only after show is called.
type pty struct {
	t        *testing.T
	keys, on *os.File // the user's side, and ralph's
	before   unix.Termios

	mu    sync.Mutex
	text  bytes.Buffer // guarded by mu
	grown *sync.Cond
	over  bool // guarded by mu
}

func newPTY(t *testing.T) *pty {
	t.Helper()
	on, keys := ptytest.New(t, 24, 80)
	p := &pty{t: t, keys: keys, on: on, before: mode(t, on)}
	p.grown = sync.NewCond(&p.mu)
	return p
}

func mode(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func (p *pty) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.grown.Broadcast()
	return p.text.Write(b)
}

// show reads the output until the test ends.
func (p *pty) show() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(p, p.keys) // ends with an error when the other side is closed
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
		p.grown.Broadcast()
	}()
	p.t.Cleanup(func() {
		_ = p.on.Close()
		<-done
		_ = p.keys.Close()
	})
}

// await waits until the output contains the text.
func (p *pty) await(text string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !strings.Contains(p.text.String(), text) {
		if p.over {
			p.t.Fatalf("%q does not come: %q", text, p.text.String())
		}
		p.grown.Wait()
	}
}

// asBefore fails the test unless the terminal has its former mode and no other mode was switched on.
func (p *pty) asBefore() {
	p.t.Helper()
	if diff := cmp.Diff(p.before, mode(p.t, p.on)); diff != "" {
		p.t.Error(diff)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.text.String()
	if strings.LastIndex(text, "\x1b[?25l") > strings.LastIndex(text, "\x1b[?25h") {
		p.t.Error("the cursor is hidden")
	}
	for _, mode := range []string{"\x1b[?1049h", "\x1b[?2004h", "\x1b[>1u", "\x1b[>4", "\x1b[?1000h", "\x1b[?2026"} { // a killed ralph would leave them on
		if strings.Contains(text, mode) {
			p.t.Errorf("a mode is switched on: %q", mode)
		}
	}
}

func (p *pty) start(name func(Run) string) *View {
	return Start(Config{Out: p.on, In: p.on, Env: []string{"TERM=xterm"}, Title: "ralph work", Leave: "Leave?", Actions: Actions{
		Name: name, Cost: func(agents.Usage) string { return "" },
	}})
}

func key(r Run) string { return r.Key }

func TestView(t *testing.T) {
	t.Parallel()
	p := newPTY(t)
	p.show()
	v := p.start(key)
	defer v.Stop()
	v.Event("", journal.Event{Kind: journal.EventStarted, Run: "r", Key: "fix-it"}, "started")
	fmt.Fprintln(v, "what is printed")
	p.await("1 working")
	p.await("fix-it")
	p.await("what is printed")
	if m := mode(t, p.on); m.Lflag&unix.ECHO != 0 || m.Lflag&unix.ISIG == 0 || m.Oflag&unix.OPOST == 0 {
		t.Errorf("mode %+v", m)
	}
	v.Suspend()
	p.asBefore()
	fmt.Fprintln(v, "while it is away")
	p.await("while it is away")
	v.Resume()
	v.Resume()
	fmt.Fprint(p.keys, "s")
	p.await("Stop fix-it?")
	fmt.Fprint(p.keys, "nqy")
	<-v.Left()
	v.Resume()
	v.Suspend()
	p.asBefore()
	fmt.Fprintln(v, "after it")
	p.await("after it")
	v.Stop()
	var none *View
	none.Event("", journal.Event{Run: "r"}, "")
	none.Stop()
}

// A view that panics does not end the work, and restores the terminal.
func TestViewPanics(t *testing.T) {
	t.Parallel()
	p := newPTY(t)
	p.show()
	v := p.start(func(Run) string { panic("no name (this panic is a test's)") })
	defer v.Stop()
	v.Event("", journal.Event{Kind: journal.EventStarted, Run: "r", Key: "fix-it"}, "")
	<-v.Left()
	v.Suspend()
	p.asBefore()
	fmt.Fprintln(v, "goes on")
	p.await("goes on")
}

// A terminal that blocks delays nobody, and the text waiting for it is limited.
func TestViewStandsStill(t *testing.T) {
	t.Parallel()
	p := newPTY(t)
	v := p.start(key)
	line := strings.Repeat("x", 99) + "\n"
	for range 10 * pendingMax / len(line) {
		if _, err := io.WriteString(v, line); err != nil {
			t.Fatal(err)
		}
		v.Event("", journal.Event{Kind: journal.EventAgent, Run: "r", Key: "fix-it", Text: line}, line)
	}
	v.mu.Lock()
	waiting, log := len(v.pending), len(v.board.rows[0].log)
	v.mu.Unlock()
	if waiting > pendingMax || log > 2*logMax {
		t.Errorf("%d bytes and %d lines wait", waiting, log)
	}
	p.show()
	fmt.Fprintln(v, "the last line")
	v.Stop()
	p.await("lines were skipped: the terminal was too slow")
	p.await("the last line")
	p.asBefore()
}
