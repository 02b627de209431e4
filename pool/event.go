package pool

import (
	"time"

	"github.com/ralph-pool/ralph/loop"
)

// EventKind says what an Event is. The set is open: readers ignore kinds they do not know.
type EventKind string

const (
	EventSweep     EventKind = "sweep"     // a sweep starts; Text says what it found
	EventProblem   EventKind = "problem"   // an issue that cannot be read; the others go on
	EventSkipped   EventKind = "skipped"   // an issue that was selected, and turned out to be somebody else's
	EventStarted   EventKind = "started"   // a run starts
	EventStep      EventKind = "step"      // the run's next step stands in the journal and is about to be taken
	EventIteration EventKind = "iteration" // an iteration starts
	EventAgent     EventKind = "agent"     // the agent says or does something; Text is hostile
	EventSignal    EventKind = "signal"    // the completion signal was seen
	EventCommits   EventKind = "commits"   // commits came back
	EventSetup     EventKind = "setup"     // a setup command has ended
	EventGate      EventKind = "gate"      // a gate command has ended
	EventRefused   EventKind = "refused"   // the sandbox wanted out and was not let; Text says where to
	EventWarning   EventKind = "warning"   // something a person may want to know
	EventEnded     EventKind = "ended"     // the run has ended with Outcome
	EventRecovered EventKind = "recovered" // the remains of a crashed run were taken care of
	EventSwept     EventKind = "swept"     // the sweep has ended
)

// Event is one thing that happened. It is flat, for JSON lines.
type Event struct {
	Time      time.Time   `json:"time"`
	Kind      EventKind   `json:"kind"`
	Run       string      `json:"run,omitempty"`
	Key       string      `json:"issue,omitempty"`
	Title     string      `json:"title,omitempty"`
	Attempt   int         `json:"attempt,omitempty"`
	Iteration int         `json:"iteration,omitempty"`
	Step      Step        `json:"step,omitempty"`
	Source    string      `json:"source,omitempty"` // EventAgent: message, tool, retry, notice, unknown
	Text      string      `json:"text,omitempty"`
	Commits   int         `json:"commits,omitempty"`
	Branch    string      `json:"branch,omitempty"`
	Outcome   Outcome     `json:"outcome,omitempty"`
	Check     *loop.Check `json:"check,omitempty"`
	Elapsed   float64     `json:"elapsed_seconds,omitempty"`
}
