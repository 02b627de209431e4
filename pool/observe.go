package pool

import (
	"fmt"

	"github.com/ralph-pool/ralph/loop"
)

// observe passes the loop's events on, as this run's.
func (w *worker) observe(e loop.Event) {
	out := Event{Iteration: e.Iteration, Text: e.Text, Check: e.Check}
	switch e.Kind {
	case loop.EventIteration:
		out.Kind = EventIteration
	case loop.EventAgent:
		out.Kind = EventAgent
		if a := e.Agent; a != nil {
			out.Source, out.Text = string(a.Kind), a.Text
			if a.Name != "" {
				out.Text = fmt.Sprintf("%s %s", a.Name, a.Detail)
			}
			if out.Text == "" {
				return
			}
			ok, last := w.talk.more(e.Iteration)
			if last {
				out.Source, out.Text = "notice", "the agent says more than is shown here; the raw stream has it"
			} else if !ok {
				return
			}
		}
	case loop.EventSignal:
		out.Kind = EventSignal
	case loop.EventWarning:
		out.Kind = EventWarning
	case loop.EventCommits:
		out.Kind, out.Commits = EventCommits, e.New
	case loop.EventSetup, loop.EventGate:
		if e.Check == nil {
			return
		}
		out.Kind = EventGate
		if e.Kind == loop.EventSetup {
			out.Kind = EventSetup
		}
	default:
		return
	}
	w.emit(out)
}
