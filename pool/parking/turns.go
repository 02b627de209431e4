package parking

import (
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Turns is the path of one run through a chain of agents. It never returns to an agent that the run has left, so it ends.
// It belongs to one goroutine.
type Turns struct {
	lot        *Lot
	chain      agents.Chain
	names      []agents.Choice
	passedOver map[agents.Choice]bool
}

// Turns begins a run's path through the chain, which must have at least one agent.
func (l *Lot) Turns(chain agents.Chain) *Turns {
	return &Turns{lot: l, chain: chain, names: chain.Choices(), passedOver: map[agents.Choice]bool{}}
}

// First returns the agent that begins: the first available one, or else the first of the chain, for a run that was
// explicitly requested.
func (t *Turns) First(now time.Time) agents.Link {
	t.lot.mu.Lock()
	defer t.lot.mu.Unlock()
	return t.chain[max(0, t.lot.firstAvailable(t.names, nil, now))]
}

// Assign sets the agent of the chain with which the run would begin now. An empty chain sets none.
func (l *Lot) Assign(chain agents.Chain, run *journal.Run, now time.Time) {
	if len(chain) > 0 {
		first := l.Turns(chain).First(now).Choice()
		run.Agent, run.Model = first.Agent, first.Model
	}
}

// Next parks the agent that failed in an iteration, and returns the next one; false if there is none. An agent without a
// failure is only passed over in this run.
func (t *Turns) Next(it loop.Iteration) (agents.Link, bool) {
	c := it.Choice()
	t.passedOver[c] = true
	if f := it.Failure; f != nil && (f.Class == agents.RateLimit || f.Class == agents.Overload) {
		t.lot.Limited(c.Agent, it.Ended)
	}
	t.lot.mu.Lock()
	defer t.lot.mu.Unlock()
	if f := it.Failure; f != nil {
		t.lot.park(journal.Parked{
			Agent: c.Agent, Model: c.Model, Class: f.Class, At: it.Ended, Until: f.AvailableAt(it.Ended), Address: f.Address,
		})
	}
	i := t.lot.firstAvailable(t.names, t.passedOver, it.Ended)
	if i < 0 {
		return agents.Link{}, false
	}
	return t.chain[i], true
}
