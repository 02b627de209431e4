// Package events delivers the events of runs. It numbers each event, redacts it, writes it to the folder of its run, and passes
// it to the runner's observer, in this order. Package pool/run uses it.
package events

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// Source numbers and redacts the events of a runner. All fields are required. It is safe for concurrent use.
type Source struct {
	Pool    string
	Secrets *redact.Secrets
	Emit    func(journal.Event) // receives every event

	last atomic.Uint64
}

// Stamp numbers and redacts an event.
func (s *Source) Stamp(e journal.Event) journal.Event {
	e.Seq, e.PID, e.Pool = s.nextAfter(0), os.Getpid(), s.Pool
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	return report.RedactedEvent(e, s.Secrets)
}

// nextAfter returns a number that is higher than all earlier ones and than the argument.
func (s *Source) nextAfter(than uint64) uint64 {
	for {
		now := s.last.Load()
		if next := max(now, than) + 1; s.last.CompareAndSwap(now, next) {
			return next
		}
	}
}

// Log delivers the events of one run and stores the raw output of its commands. It is safe for concurrent use.
type Log struct {
	source *Source
	run    journal.Run
	log    *slog.Logger
	folder *journal.Folder // nil: it did not open
	events sync.Mutex      // held during a delivery, so that events are in the order of their numbers
	latest atomic.Pointer[journal.Event]
	news   chan struct{}

	mu    sync.Mutex
	loops report.Loops // guarded by mu

	// Loop, if set, receives every event of the loop.
	Loop func(loop.Event)
	// Output, if set, creates the files for the output of commands, instead of files in the run's folder.
	Output func(name string) (io.WriteCloser, error)
}

// New returns the log of a run. Before Open it only passes events on and writes none.
func (s *Source) New(run journal.Run, log *slog.Logger) *Log {
	l := &Log{source: s, run: run, log: log, news: make(chan struct{}, 1)}
	l.latest.Store(&journal.Event{})
	return l
}

// Open creates the run's folder, or opens it again.
func (l *Log) Open() (err error) {
	l.folder, err = journal.OpenFolder(l.run.Dir)
	return err
}

// Close closes the run's folder.
func (l *Log) Close() {
	if err := l.folder.Close(); err != nil {
		l.log.Warn("event log not closed", "error", err)
	}
}

// StopObeyed removes another process's request to stop, so that it does not stop the run when a later process continues it.
func (l *Log) StopObeyed() {
	if err := l.folder.StopObeyed(); err != nil {
		l.log.Warn("request to stop not removed", "error", err)
	}
}

// Emit stamps and delivers an event.
func (l *Log) Emit(e journal.Event) { l.Deliver(l.Stamp(e)) }

// Warn emits a warning.
func (l *Log) Warn(text string) { l.Emit(journal.Event{Kind: journal.EventWarning, Text: text}) }

// Notice emits a notice as a warning.
func (l *Log) Notice(n sandboxes.Notice) {
	l.Emit(journal.Event{Kind: journal.EventWarning, Text: n.Text, Subject: n.Subject})
}

// Note emits information that nobody has to act on.
func (l *Log) Note(text string) { l.Emit(journal.Event{Kind: journal.EventNote, Text: text}) }

// Waiting notes that a request of the run waits until this time.
func (l *Log) Waiting(until time.Time) {
	l.Note("waits for the forge's rate limit until " + until.Local().Format(time.TimeOnly))
}

// Refused emits a refused connection.
func (l *Log) Refused(e egress.Event) {
	l.Emit(journal.Event{Kind: journal.EventRefused, Text: fmt.Sprintf("%s:%d %s %s", e.Host, e.Port, e.Reason, e.Detail)})
}

// Observe emits an event of the loop as one of this run.
func (l *Log) Observe(e loop.Event, at journal.Place) {
	if l.Loop != nil {
		l.Loop(e)
	}
	l.mu.Lock()
	out, ok := l.loops.Event(e)
	l.mu.Unlock()
	if ok {
		out.Place = at
		l.Emit(out)
	}
}

// Stamp adds the run's data to an event, and numbers and redacts it.
func (l *Log) Stamp(e journal.Event) journal.Event {
	e.Run, e.Key, e.Title, e.Attempt = l.run.ID, l.run.Key, l.run.Title, l.run.Attempt
	return l.source.Stamp(e)
}

// Deliver writes a stamped event to the run's folder and passes it on.
func (l *Log) Deliver(e journal.Event) {
	l.events.Lock()
	defer l.events.Unlock()
	if last := l.folder.Last(); e.Seq <= last { // another event was faster, or came from a process that has died
		e.Seq = l.source.nextAfter(last)
	}
	if err := l.folder.Append(e); err != nil {
		l.log.Debug("event not written", "error", err)
	}
	l.log.Debug("event", "event", e)
	l.source.Emit(e)
	if e.Kind == journal.EventStage || e.Kind == journal.EventIteration {
		l.latest.Store(&e)
		select {
		case l.news <- struct{}{}:
		default: // the latest news is not read yet
		}
	}
}

// Latest returns the latest event of a stage or an iteration.
func (l *Log) Latest() journal.Event { return *l.latest.Load() }

// News returns a channel that has a value when Latest has changed.
func (l *Log) News() <-chan struct{} { return l.news }

// Stream creates a file for the raw output of one command. It redacts secrets.
func (l *Log) Stream(name string) (io.WriteCloser, error) {
	cut := func(lost int64) {
		l.Warn(fmt.Sprintf("%s has the first %d MiB of the output; %d more bytes were not kept", name, redact.StreamLimit>>20, lost))
	}
	create := l.Output
	if create == nil {
		create = l.folder.Create
	}
	to, err := create(name)
	if err != nil {
		return nil, err
	}
	return l.source.Secrets.Stream(to, cut), nil
}
