package loop

import (
	"fmt"

	"github.com/ralph-pool/ralph/agents"
)

// Usage returns the budget as an estimated usage of an unknown model.
func (b Budget) Usage() agents.Usage {
	u := agents.Usage{Input: b.Tokens, Estimated: b.Tokens, CostUSD: b.CostUSD}
	if u.CostUSD == 0 {
		u.Unpriced = u.Input
	}
	return u
}

// currentEstimate returns the estimate for the current agent.
func (r *runner) currentEstimate() Budget {
	if r.c.Estimate == nil {
		return Budget{}
	}
	return r.c.Estimate(r.c.Agent)
}

// emitEstimate reports the estimate before an agent starts, until the agent reports its usage, so that a crash does not lose it.
func (r *runner) emitEstimate(n int) {
	if e := r.currentEstimate(); e != (Budget{}) {
		r.observe.emit(Event{Kind: EventSpent, Iteration: n, Used: r.res.Usage.Add(e.Usage())})
	}
}

// addEstimate counts the estimate for an iteration whose usage neither the agent nor its service has reported.
func (r *runner) addEstimate(t *turn, answered bool) {
	e, silent := r.currentEstimate(), r.c.Agent.Describe().NoUsage
	switch f := t.Failure; {
	case e == (Budget{}) || t.Usage != (agents.Usage{}) || answered || t.Ending == EndingNotStarted,
		f != nil && (f.Class.Unavailable() || f.Class == agents.NotStarted): // its model was not asked, or did not answer
		return
	case f != nil && !silent && !t.acted && t.Ending == EndingExit:
		return // the agent reported that it did nothing
	}
	t.Usage, t.estimated = e.Usage(), true
	if !silent { // for silent agents this is known before they start
		r.warn(fmt.Sprintf("iteration %d: agent %s did not report its usage; ralph counts an estimate of %d tokens",
			t.Number, t.Agent, t.Usage.Input))
	}
}
