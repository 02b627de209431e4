package journal

import (
	"log/slog"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
)

// EventKind is the kind of an Event. The set is open: readers ignore unknown kinds.
type EventKind string

const (
	EventSweep     EventKind = "sweep"     // a sweep starts; Text: what it found
	EventProblem   EventKind = "problem"   // an issue cannot be read or worked; the others continue
	EventSkipped   EventKind = "skipped"   // an issue was selected but does not qualify
	EventStarted   EventKind = "started"   // setup and gate have run on the base, and the rest of the run starts; Elapsed: since the start of the run
	EventStage     EventKind = "stage"     // the run's next stage is stored and about to begin; Elapsed: since the start of the run
	EventNote      EventKind = "note"      // a stage is about to do something unusual; Text: what
	EventIteration EventKind = "iteration" // an iteration starts
	EventAgent     EventKind = "agent"     // the agent says or does something; Text: hostile
	EventSignal    EventKind = "signal"    // the completion signal was seen
	EventCommits   EventKind = "commits"   // commits were imported
	EventUsage     EventKind = "usage"     // an iteration has ended; Usage: of the iteration
	EventSetup     EventKind = "setup"     // a setup command starts (Text) or has ended (Check)
	EventGate      EventKind = "gate"      // a gate command starts (Text) or has ended (Check)
	EventAfter     EventKind = "after"     // a command after the run starts (Text) or has ended (Check)
	EventReview    EventKind = "review"    // a second agent starts to review the commits or has ended (Usage); Text: how
	EventRefused   EventKind = "refused"   // the sandbox tried a connection that is not allowed; Text: the target
	EventWarning   EventKind = "warning"   // something a person may want to know
	EventDeferred  EventKind = "deferred"  // the end of the run is left to the next sweep; Text: why
	EventEnded     EventKind = "ended"     // the run has ended with Outcome; Usage: of the run
	EventRecovered EventKind = "recovered" // a run in which ralph had died was completed
	EventMerged    EventKind = "merged"    // a person has merged an issue's commits, and ralph has closed the issue
	EventDropped   EventKind = "dropped"   // an observer was too slow; Count: number of dropped events
)

// Place is where setup and gate run.
type Place string

const (
	PlaceWorktree Place = "" // the agent's worktree
	PlaceBase     Place = "base"
	PlaceCheckout Place = "checkout" // a clean checkout of the agent's commits
)

// Event is something that happened in a run or a sweep. All kinds share this type, which is written as one JSON line.
type Event struct {
	// Seq increases with each event of a run, also across processes. Events of concurrent runs may arrive in another order.
	Seq         uint64        `json:"seq"`
	PID         int           `json:"pid,omitempty"`  // process that sent the event
	Pool        string        `json:"pool,omitempty"` // namespace of the pool
	Time        time.Time     `json:"time"`
	Kind        EventKind     `json:"kind"`
	Run         string        `json:"run,omitempty"`
	Key         string        `json:"issue,omitempty"`
	Title       string        `json:"title,omitempty"` // the title in one clean line, at most tracker.MaxTitle
	Attempt     int           `json:"attempt,omitempty"`
	Iteration   int           `json:"iteration,omitempty"`
	Stage       Stage         `json:"stage,omitempty"`
	Place       Place         `json:"place,omitempty"` // EventSetup, EventGate
	Log         string        `json:"log,omitempty"`   // when a command begins: the file for its output, in the run's folder
	LogFrom     int64         `json:"log_from,omitempty"`
	Source      string        `json:"source,omitempty"` // EventAgent: message, tool, retry, notice, unknown
	Text        string        `json:"text,omitempty"`
	Agent       string        `json:"agent,omitempty"`   // EventStarted, EventUsage, EventEnded
	Model       string        `json:"model,omitempty"`   // model of Agent; empty: the agent's default
	Session     string        `json:"session,omitempty"` // EventUsage: the agent's own session ID; hostile
	Sandbox     string        `json:"sandbox,omitempty"` // EventStarted, EventEnded
	Commits     int           `json:"commits,omitempty"`
	Count       int           `json:"count,omitempty"` // EventDropped
	Branch      string        `json:"branch,omitempty"`
	Outcome     Outcome       `json:"outcome,omitempty"`
	Final       bool          `json:"final,omitempty"`   // EventEnded: a person has to act next
	Merged      bool          `json:"merged,omitempty"`  // EventEnded: the base has the commits
	URL         string        `json:"url,omitempty"`     // EventEnded: page of the issue
	Request     string        `json:"request,omitempty"` // EventEnded: page of the pull or merge request
	Idle        bool          `json:"idle,omitempty"`    // EventSweep: there was nothing to work
	Skip        *Skip         `json:"skip,omitempty"`    // EventSkipped, EventProblem
	Reason      *Reason       `json:"reason,omitempty"`
	Check       *loop.Check   `json:"check,omitempty"`
	Usage       *agents.Usage `json:"usage,omitempty"`
	CostUnknown bool          `json:"cost_unknown,omitempty"` // EventEnded: see Record.CostUnknown
	Elapsed     float64       `json:"elapsed_seconds,omitempty"`

	sandboxes.Subject // EventWarning: the subject of the notice in Text
}

// LogValue returns the event's attributes, without those that are on every line of a run's log.
func (e Event) LogValue() slog.Value {
	var out []slog.Attr
	add := func(name, text string) {
		if text != "" {
			out = append(out, slog.String(name, text))
		}
	}
	add("kind", string(e.Kind))
	if e.Iteration > 0 {
		out = append(out, slog.Int("iteration", e.Iteration))
	}
	add("stage", string(e.Stage))
	add("place", string(e.Place))
	add("source", e.Source)
	add("text", e.Text)
	add("outcome", string(e.Outcome))
	if r := e.Reason; r != nil {
		add("reason", string(r.Code))
		add("detail", r.Detail)
	}
	if s := e.Skip; s != nil {
		add("skip", string(s.Code))
		add("detail", s.Detail)
	}
	if c := e.Check; c != nil {
		out = append(out, slog.String("check", c.Command), slog.Int("exit", c.ExitCode))
	}
	if e.Elapsed > 0 {
		out = append(out, slog.Float64("elapsed_seconds", e.Elapsed))
	}
	return slog.GroupValue(out...)
}

// Begins reports whether the event is the start of a setup or gate command, or of one after the run.
func (e Event) Begins() bool {
	return e.Check == nil && (e.Kind == EventSetup || e.Kind == EventGate || e.Kind == EventAfter)
}

// Progress reports whether the event only shows progress: an observer that misses it loses nothing durable.
func (e Event) Progress() bool {
	switch e.Kind {
	case EventAgent, EventStage, EventIteration, EventCommits, EventSignal, EventUsage, EventSetup, EventGate, EventAfter, EventReview, EventRefused:
		return true
	}
	return false
}
