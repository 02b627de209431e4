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
// goroutine; the timers read activity from a third.
type transcript struct {
	iteration  int
	observe    *observer
	decoder    agents.Decoder // this and the following fields belong to stdout's goroutine
	lines      *proc.Lines
	completion *completion
	acted      bool       // the agent wrote a message or used a tool
	prose      *proc.Tail // nil: not needed
	proseID    string
	stderr     *proc.Tail

	signalChanged chan struct{} // receives a value when the signal appears or is withdrawn

	mu       sync.Mutex
	activity activity // guarded by mu
}

func newTranscript(iteration int, c Config, o *observer) *transcript {
	now := time.Now()
	t := &transcript{
		iteration:     iteration,
		observe:       o,
		decoder:       c.Agent.NewDecoder(),
		completion:    newCompletion(c.Signals),
		stderr:        proc.NewTail(stderrKept),
		signalChanged: make(chan struct{}, 1),
		activity:      activity{lastByte: now, warnedAt: now},
	}
	t.lines = proc.NewLines(t.line)
	if c.Output != nil {
		t.prose = proc.NewTail(proseKept)
	}
	return t
}

// stdoutWriter returns the writer for standard output, which also copies the bytes to raw.
func (t *transcript) stdoutWriter(raw io.Writer) io.Writer {
	return activityWriter{t, []io.Writer{raw, t.lines}}
}

// stderrWriter returns the writer for standard error, which also copies the bytes to raw.
func (t *transcript) stderrWriter(raw io.Writer) io.Writer {
	return activityWriter{t, []io.Writer{raw, t.stderr}}
}

// activityWriter records that the process is alive, and passes the bytes on to writers that never fail.
type activityWriter struct {
	t  *transcript
	to []io.Writer
}

func (w activityWriter) Write(p []byte) (int, error) {
	w.t.recordActivity()
	for _, to := range w.to {
		_, _ = to.Write(p)
	}
	return len(p), nil
}

// finish closes the stream of a process that has ended and returns its report.
func (t *transcript) finish(ending agents.Ending) agents.Report {
	_ = t.lines.Close()
	ending.StderrTail = t.stderr.String()
	return t.decoder.Finish(ending)
}

func (t *transcript) recordActivity() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.activity.lastByte = time.Now()
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
		t.observe.emitAgent(t.iteration, e)
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
	before := t.completion.endMark()
	t.completion.add(e)
	after := t.completion.endMark()
	if (before == "") == (after == "") {
		return
	}
	t.mu.Lock()
	t.activity.signalAt = time.Time{}
	if after != "" {
		t.activity.signalAt = time.Now()
	}
	t.mu.Unlock()
	select {
	case t.signalChanged <- struct{}{}:
	default: // the timers have not handled the previous change yet
	}
	if after != "" {
		t.observe.emit(Event{Kind: EventSignal, Iteration: t.iteration, Text: neutral.Shorten(after, eventText)})
	}
}

// checkTimers evaluates the timers, and records a warning as given.
//
//nolint:revive,staticcheck // kill is an answer, not this function's error
func (t *transcript) checkTimers(timers Timers) (kill error, silent time.Duration, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	kill, warn, next := timers.check(t.activity, now)
	if warn {
		t.activity.warnedAt = now
		silent = now.Sub(t.activity.lastByte)
	}
	return kill, silent, next
}
