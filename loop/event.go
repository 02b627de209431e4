package loop

import (
	"sync"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
)

// EventKind is the kind of an Event. The set is open.
type EventKind string

const (
	EventIteration EventKind = "iteration" // an iteration starts
	EventAgent     EventKind = "agent"     // an action of the agent
	EventSignal    EventKind = "signal"    // the completion signal was seen
	EventWarning   EventKind = "warning"   // idle, grace expired, …
	EventCommits   EventKind = "commits"   // new commits were imported
	EventSetup     EventKind = "setup"     // a setup command starts or has ended
	EventGate      EventKind = "gate"      // a gate command starts or has ended
	EventAfter     EventKind = "after"     // a command after the run starts or has ended; see RunCommands
	EventSpent     EventKind = "spent"     // the agent has used more tokens
	EventSaid      EventKind = "said"      // the agent has ended after its completion signal; its commits are not imported yet
	EventEnded     EventKind = "iteration-ended"
)

// Event is one event of the loop. Its texts are bounded (4 KiB each); those of an agent are hostile.
type Event struct {
	Kind      EventKind
	Iteration int
	Text      string        // empty for EventAgent: see Agent.Text
	Agent     *agents.Event // EventAgent
	Check     *Check        // EventGate, EventSetup: set when the command has ended
	Result    *Iteration    // EventEnded
	New       int           // EventCommits
	Used      agents.Usage  // EventSpent, EventEnded: total of the whole loop so far
}

const eventText = 4 << 10 // maximum bytes of one text in an event

// observer passes events to the caller, one at a time: those of an agent come from the goroutine that reads its output, warnings
// and all others from the one that runs the loop.
type observer struct {
	mu sync.Mutex // held during call
	fn func(Event)
}

func (o *observer) emit(e Event) {
	if o.fn == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fn(e)
}

func (o *observer) emitAgent(iteration int, e agents.Event) {
	if o.fn == nil {
		return
	}
	e.Text = neutral.Shorten(e.Text, eventText)
	e.Detail = neutral.Shorten(e.Detail, eventText)
	e.Name = neutral.Shorten(e.Name, eventText)
	e.Session = neutral.Shorten(e.Session, eventText)
	e.Message = neutral.Shorten(e.Message, eventText)
	o.emit(Event{Kind: EventAgent, Iteration: iteration, Agent: &e})
}
