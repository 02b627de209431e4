package loop

import (
	"io"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/proc"
)

const (
	stderrKept  = 16 << 10 // bytes of standard error that a decoder gets
	stderrLines = 50       // lines of standard error in a failure
	proseKept   = 1 << 20  // bytes of an iteration's prose that are searched for structured output
)

// transcript reads the output of one agent process as it arrives. Standard output and standard error are each written from one
// goroutine; the timers read pulse from a third.
type transcript struct {
	iteration int
	observe   *observer
	decoder   agents.Decoder // this and the following fields belong to stdout's goroutine
	lines     *proc.Lines
	done      *completion
	acted     bool       // the agent wrote a message or used a tool
	prose     *proc.Tail // nil: not needed
	proseID   string
	stderr    *proc.Tail

	changed chan struct{} // receives a value when the signal appears or is withdrawn

	mu    sync.Mutex
	pulse pulse // guarded by mu
}

func newTranscript(iteration int, c Config, o *observer) *transcript {
	now := time.Now()
	t := &transcript{
		iteration: iteration,
		observe:   o,
		decoder:   c.Agent.NewDecoder(),
		done:      newCompletion(c.Signals),
		stderr:    proc.NewTail(stderrKept),
		changed:   make(chan struct{}, 1),
		pulse:     pulse{last: now, warned: now},
	}
	t.lines = proc.NewLines(t.line)
	if c.Output != nil {
		t.prose = proc.NewTail(proseKept)
	}
	return t
}

// stdout returns the writer for standard output, which also copies the bytes to raw.
func (t *transcript) stdout(raw io.Writer) io.Writer { return tap{t, []io.Writer{raw, t.lines}} }

// errors returns the writer for standard error, which also copies the bytes to raw.
func (t *transcript) errors(raw io.Writer) io.Writer { return tap{t, []io.Writer{raw, t.stderr}} }

// tap records that the process is alive, and passes the bytes on to writers that never fail.
type tap struct {
	t  *transcript
	to []io.Writer
}

func (w tap) Write(p []byte) (int, error) {
	w.t.alive()
	for _, to := range w.to {
		_, _ = to.Write(p)
	}
	return len(p), nil
}

// end closes the stream of a process that has ended and returns its report.
func (t *transcript) end(how agents.Ending) agents.Report {
	_ = t.lines.Close()
	how.StderrTail = t.stderr.String()
	return t.decoder.Finish(how)
}

func (t *transcript) alive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pulse.last = time.Now()
}

func (t *transcript) line(line []byte) {
	for _, e := range t.decoder.Line(line) {
		t.acted = t.acted || e.Kind == agents.EventTool || e.Kind == agents.EventDenied || e.Kind == agents.EventMessage && e.Text != ""
		if e.Kind == agents.EventMessage {
			t.message(e)
			if e.Text == "" {
				continue // only the beginning of a message
			}
		}
		t.observe.agent(t.iteration, e)
	}
}

func (t *transcript) message(e agents.Event) {
	if t.prose != nil {
		if e.Message != t.proseID && t.prose.Total() > 0 {
			_, _ = io.WriteString(t.prose, "\n")
		}
		t.proseID = e.Message
		_, _ = io.WriteString(t.prose, e.Text)
	}
	before := t.done.complete()
	t.done.add(e)
	after := t.done.complete()
	if (before == "") == (after == "") {
		return
	}
	t.mu.Lock()
	t.pulse.signal = time.Time{}
	if after != "" {
		t.pulse.signal = time.Now()
	}
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default: // the timers have not handled the previous change yet
	}
	if after != "" {
		t.observe.emit(Event{Kind: EventSignal, Iteration: t.iteration, Text: neutral.Shorten(after, eventText)})
	}
}

// check evaluates the timers, and records a warning as given.
//
//nolint:revive,staticcheck // kill is an answer, not this function's error
func (t *transcript) check(timers Timers) (kill error, silent time.Duration, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	kill, warn, next := timers.check(t.pulse, now)
	if warn {
		t.pulse.warned = now
		silent = now.Sub(t.pulse.last)
	}
	return kill, silent, next
}
