package run

import (
	"fmt"
	"io"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// emit stamps an event, redacts it, writes it to the run's folder and passes it on.
func (x *execution) emit(e journal.Event) {
	e.Run, e.Key, e.Title, e.Attempt = x.run.ID, x.run.Key, x.run.Title, x.run.Attempt
	e = x.r.Stamp(e)
	if err := x.folder.Append(e); err != nil {
		x.log.Debug("event not written", "error", err)
	}
	x.log.Debug("event", "event", e)
	x.c.Emit(e)
	if e.Kind == journal.EventStage || e.Kind == journal.EventIteration {
		x.at.Store(&e)
		select {
		case x.news <- struct{}{}:
		default: // nobody has looked since
		}
	}
}

// Stamp numbers and redacts an event.
func (r *Runner) Stamp(e journal.Event) journal.Event {
	e.Seq, e.Pool = r.seq.Add(1), r.c.Name
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	return redacted(e, r.c.Secrets)
}

func redacted(e journal.Event, s *redact.Secrets) journal.Event {
	e.Text, e.Title = s.Clean(e.Text), s.Clean(e.Title)
	if e.Reason != nil {
		reason := *e.Reason
		reason.Detail = s.Clean(reason.Detail)
		e.Reason = &reason
	}
	if e.Skip != nil {
		skip := *e.Skip
		skip.Detail = s.Clean(skip.Detail)
		e.Skip = &skip
	}
	if e.Check != nil {
		check := *e.Check
		check.Tail, check.Command = s.Clean(check.Tail), s.Clean(check.Command)
		e.Check = &check
	}
	return e
}

// stream opens a file of the run's folder for the raw output of one command.
func (x *execution) stream(name string) (io.WriteCloser, error) {
	if x.task.Stream != nil {
		to, err := x.task.Stream(name)
		if err != nil {
			return nil, err
		}
		return x.c.Secrets.Stream(to), nil
	}
	f, err := x.folder.Create(name)
	if err != nil {
		return nil, err
	}
	return x.c.Secrets.Stream(f), nil
}

// refusal tells of a refused connection while the run is on.
func (x *execution) refusal(e egress.Event) {
	x.emit(journal.Event{Kind: journal.EventRefused, Text: fmt.Sprintf("%s:%d %s %s", e.Host, e.Port, e.Reason, e.Detail)})
}

// observe passes the loop's events on, as this run's.
func (x *execution) observe(e loop.Event, at journal.Place) {
	if x.task.Observe != nil {
		x.task.Observe(e)
	}
	out := journal.Event{Iteration: e.Iteration, Text: e.Text, Check: e.Check, Place: at}
	switch e.Kind {
	case loop.EventIteration:
		out.Kind = journal.EventIteration
	case loop.EventSignal:
		out.Kind = journal.EventSignal
	case loop.EventWarning:
		out.Kind = journal.EventWarning
	case loop.EventCommits:
		out.Kind, out.Commits = journal.EventCommits, e.New
	case loop.EventEnded:
		if e.Result == nil {
			return
		}
		usage := e.Result.Usage
		out.Kind, out.Usage, out.Elapsed = journal.EventUsage, &usage, e.Result.Duration.Seconds()
	case loop.EventSetup, loop.EventGate:
		out.Kind = journal.EventGate
		if e.Kind == loop.EventSetup {
			out.Kind = journal.EventSetup
		}
	case loop.EventAgent:
		if e.Agent == nil || !x.chatter.show(&out, e) {
			return
		}
	default:
		return
	}
	x.emit(out)
}

// chatterLimit is how many things that the agent says or does in one iteration become events.
const chatterLimit = 2000

// chatter counts them. It belongs to the loop's observer.
type chatter struct {
	iteration, said int
}

// show fills in the event of something the agent says or does; false leaves it out.
func (c *chatter) show(out *journal.Event, e loop.Event) bool {
	out.Kind, out.Source, out.Text = journal.EventAgent, string(e.Agent.Kind), e.Agent.Text
	if e.Agent.Name != "" {
		out.Text = fmt.Sprintf("%s %s", e.Agent.Name, e.Agent.Detail)
	}
	if out.Text == "" {
		return false
	}
	if e.Iteration != c.iteration {
		*c = chatter{iteration: e.Iteration}
	}
	c.said++
	if c.said == chatterLimit+1 {
		out.Source, out.Text = "notice", "the agent says more than is shown here; the raw stream has it"
	}
	return c.said <= chatterLimit+1
}
