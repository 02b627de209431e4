package report

import (
	"fmt"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// chatterLimit is the number of agent messages and actions of one iteration that become events.
const chatterLimit = 2000

// Loops converts the events of a run's loops into events of the run. It is not safe for concurrent use.
type Loops struct {
	iteration, said int
}

// Event converts a loop's event; false: the event is not shown.
func (l *Loops) Event(e loop.Event) (journal.Event, bool) {
	out := journal.Event{Iteration: e.Iteration, Text: e.Text, Check: e.Check}
	switch e.Kind {
	case loop.EventIteration, loop.EventSignal, loop.EventWarning, loop.EventSetup, loop.EventGate, loop.EventAfter:
		out.Kind = journal.EventKind(e.Kind) // the kinds have the same names
	case loop.EventCommits:
		out.Kind, out.Commits = journal.EventCommits, e.New
	case loop.EventEnded:
		if e.Result == nil {
			return out, false
		}
		usage := e.Result.Usage
		out.Kind, out.Usage, out.Elapsed = journal.EventUsage, &usage, e.Result.Duration.Seconds()
		out.Agent, out.Model, out.Session = e.Result.Agent, e.Result.Model, e.Result.Session
		out.Text = "" // if it ended by itself, the following event says why
		if how := e.Result.Ending; how != loop.EndingExit && how != loop.EndingNotStarted {
			if out.Text = Ending(*e.Result); out.Text == "" && e.Result.Failure != nil {
				out.Text = Failure(e.Result.Failure)
			}
		}
	case loop.EventAgent:
		return out, e.Agent != nil && l.agent(&out, e)
	default:
		return out, false
	}
	return out, true
}

// agent fills in the event of a message or action of the agent; false: the event is not shown.
func (l *Loops) agent(out *journal.Event, e loop.Event) bool {
	out.Kind, out.Source, out.Text = journal.EventAgent, string(e.Agent.Kind), e.Agent.Text
	if e.Agent.Name != "" {
		out.Text = fmt.Sprintf("%s %s", e.Agent.Name, e.Agent.Detail)
	}
	if out.Text == "" {
		return false
	}
	if e.Iteration != l.iteration {
		*l = Loops{iteration: e.Iteration}
	}
	l.said++
	if l.said == chatterLimit+1 {
		out.Source, out.Text = "notice", "the agent's text is cut here; the raw stream has all of it"
	}
	return l.said <= chatterLimit+1
}

// Action returns a run's activity after this event, for people; "" if there is none yet. ok is false if the event does not
// change it. The text may be hostile.
func Action(e journal.Event) (text string, ok bool) {
	switch e.Kind {
	case journal.EventAgent, journal.EventNote, journal.EventReview:
		return e.Text, true
	case journal.EventStage, journal.EventIteration:
		return "", true
	case journal.EventSetup, journal.EventGate:
		if e.Check != nil { // the command has ended
			return "", true
		}
		return string(e.Kind) + PlaceSuffix(e.Place) + ": " + e.Text, true
	}
	return "", false
}

// PlaceSuffix returns a suffix for a check's name with the place where it ran; "" for the worktree.
func PlaceSuffix(p journal.Place) string {
	switch p {
	case journal.PlaceBase:
		return " on the base"
	case journal.PlaceCheckout:
		return " on a clean checkout"
	}
	return ""
}
