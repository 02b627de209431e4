package parking

import (
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Turns is one run's way through a chain. It returns to no agent that the run has left, so it comes to an end. It belongs to
// one goroutine.
type Turns struct {
	lot   *Lot
	chain agents.Chain
	names []agents.Choice
	over  map[agents.Choice]bool
}

// Turns begins a run's way through the chain, which has at least one agent.
func (l *Lot) Turns(chain agents.Chain) *Turns {
	return &Turns{lot: l, chain: chain, names: chain.Choices(), over: map[agents.Choice]bool{}}
}

// First is the agent that begins: the first that is available, or the first of all where none is, for a run that is wanted
// all the same.
func (t *Turns) First(now time.Time) agents.Link {
	t.lot.mu.Lock()
	defer t.lot.mu.Unlock()
	return t.chain[max(0, t.lot.first(t.names, nil, now))]
}

// Assign names the agent of the chain with which the run would begin now. An empty chain names none.
func (l *Lot) Assign(chain agents.Chain, run *journal.Run, now time.Time) {
	if len(chain) > 0 {
		first := l.Turns(chain).First(now).Choice()
		run.Agent, run.Model = first.Agent, first.Model
	}
}

// Next parks the agent of an iteration that it could not do, and returns the one that goes on; false: there is none. An agent
// without a failure is only passed over in this run.
func (t *Turns) Next(it loop.Iteration) (agents.Link, bool) {
	c := it.Choice()
	t.over[c] = true
	if f := it.Failure; f != nil && (f.Class == agents.RateLimit || f.Class == agents.Overload) {
		t.lot.Limited(c.Agent, it.Ended)
	}
	t.lot.mu.Lock()
	defer t.lot.mu.Unlock()
	if it.Failure != nil {
		t.lot.park(journal.Parked{Agent: c.Agent, Model: c.Model, Class: it.Failure.Class, At: it.Ended, Until: it.Failure.Back(it.Ended)})
	}
	i := t.lot.first(t.names, t.over, it.Ended)
	if i < 0 {
		return agents.Link{}, false
	}
	return t.chain[i], true
}
