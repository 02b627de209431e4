package run

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// emit stamps an event, redacts it, writes it to the run's folder and passes it on.
func (x *execution) emit(e journal.Event) { x.deliver(x.stamp(e)) }

func (x *execution) stamp(e journal.Event) journal.Event {
	e.Run, e.Key, e.Title, e.Attempt = x.run.ID, x.run.Key, x.run.Title, x.run.Attempt
	return x.r.Stamp(e)
}

func (x *execution) deliver(e journal.Event) {
	x.events.Lock()
	defer x.events.Unlock()
	if last := x.folder.Last(); e.Seq <= last { // another was faster, or a process that has died
		e.Seq = x.r.number(last)
	}
	if err := x.folder.Append(e); err != nil {
		x.log.Debug("event not written", "error", err)
	}
	x.log.Debug("event", "event", e)
	x.c.Emit(e)
	if e.Kind == journal.EventStage || e.Kind == journal.EventIteration {
		x.at.Store(&e)
		select {
		case x.news <- struct{}{}:
		default: // the latest news is not read yet
		}
	}
}

// Stamp numbers and redacts an event.
func (r *Runner) Stamp(e journal.Event) journal.Event {
	e.Seq, e.PID, e.Pool = r.number(0), os.Getpid(), r.c.Name
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	return report.RedactedEvent(e, r.c.Secrets)
}

// number is the next number of an event, and higher than another.
func (r *Runner) number(than uint64) uint64 {
	for {
		now := r.seq.Load()
		if next := max(now, than) + 1; r.seq.CompareAndSwap(now, next) {
			return next
		}
	}
}

// stream opens a file of the run's folder for the raw output of one command.
func (x *execution) stream(name string) (io.WriteCloser, error) {
	cut := func(lost int64) {
		x.emit(journal.Event{Kind: journal.EventWarning, Text: fmt.Sprintf(
			"%s has the first %d MiB of the output; %d more bytes were not kept", name, redact.StreamLimit>>20, lost)})
	}
	create := x.folder.Create
	if x.task.Stream != nil {
		create = x.task.Stream
	}
	to, err := create(name)
	if err != nil {
		return nil, err
	}
	return x.c.Secrets.Stream(to, cut), nil
}

// refusal emits an event for a refused connection.
func (x *execution) refusal(e egress.Event) {
	x.emit(journal.Event{Kind: journal.EventRefused, Text: fmt.Sprintf("%s:%d %s %s", e.Host, e.Port, e.Reason, e.Detail)})
}

// observe emits an event of the loop as one of this run.
func (x *execution) observe(e loop.Event, at journal.Place) {
	if x.task.Observe != nil {
		x.task.Observe(e)
	}
	if out, ok := x.shows.Event(e); ok {
		out.Place = at
		x.emit(out)
	}
}
