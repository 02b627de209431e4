package report

import (
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
)

// The agent's messages and actions become events, in each iteration up to a limit, and after that one in each pause.
const (
	chatterLimit = 2000
	chatterPause = 5 * time.Second
)

// Loops converts the events of a run's loops into events of the run. It is not safe for concurrent use.
type Loops struct {
	iteration, said int
	shown           time.Time        // when the latest line after the limit was shown
	now             func() time.Time // nil: time.Now
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
		*l = Loops{iteration: e.Iteration, now: l.now}
	}
	if l.said++; l.said <= chatterLimit {
		return true
	}
	now := time.Now
	if l.now != nil {
		now = l.now
	}
	at := now()
	if l.said == chatterLimit+1 {
		out.Source, out.Text = "notice", fmt.Sprintf("from here on the log has one line of the agent every %s; the raw stream has more, up to %d MiB",
			chatterPause, redact.StreamLimit>>20)
	} else if at.Sub(l.shown) < chatterPause {
		return false
	}
	l.shown = at
	return true
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
