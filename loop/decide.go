package loop

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
)

// decide determines by facts how to continue after an iteration whose commits have been imported.
func (r *runner) decide(ctx context.Context, t turn) step {
	if s := r.endIfStopped(ctx); s.end != "" {
		return s
	}
	if t.sandboxErr != nil {
		return r.endBroken(ctx, fmt.Errorf("iteration %d: %w", t.Number, t.sandboxErr))
	}
	if t.Ending == EndingBudget && t.Signal == "" || t.Failure != nil && r.budgetSpent(ctx, r.res.Usage) {
		// The failure may be that the service refused the agent because of the budget.
		return step{end: EndBudget}
	}
	if (t.Ending == EndingIterationBudget || t.Ending == EndingAgentBudget) && t.Signal == "" ||
		t.Failure != nil && !t.estimated && (r.c.Iteration.Exhausted(t.Usage) || r.agentBudget().Exhausted(r.agentUsage)) {
		r.lastFailure = ""
		return r.iterateAgain(ctx, t, MissingBudget, feedbackShare)
	}
	if t.Failure != nil {
		return r.decideFailure(ctx, t)
	}
	r.lastFailure = ""
	if r.c.Output != nil {
		return r.decideOutput(ctx, t)
	}
	return r.decideMessage(ctx, t)
}

func (r *runner) decideFailure(ctx context.Context, t turn) step {
	class := t.Failure.Class
	switch {
	case class.Unavailable() || class == agents.NotStarted && r.isUntouched(t):
		return r.replaceAgent(t)
	case class.Fatal() && !(t.Resumed && class == agents.BadRequest): // a new session may be accepted
		return step{end: EndAgent}
	case r.lacksPermission(t):
		return step{end: EndDenied}
	}
	kind := string(t.Ending) + " " + string(class)
	if kind == r.lastFailure && t.Commits == 0 {
		r.res.Repeated = true
		return step{end: EndAgent}
	}
	r.lastFailure = kind
	return r.iterateAgain(ctx, t, "", feedbackFailure(t.Failure))
}

// isUntouched reports whether the agent has not changed anything yet: if its program cannot be started then, it cannot be
// started for any issue. Later the run itself may be the cause.
func (r *runner) isUntouched(t turn) bool {
	return t.Number == r.agentStart && (t.Number > 1 || r.res.Work.Commits == 0)
}

// replaceAgent continues with the next agent. The work of an unavailable agent counts towards no limit.
func (r *runner) replaceAgent(t turn) step {
	if !r.switchAgent(t.Iteration, "is unavailable ("+string(t.Failure.Class)+")") {
		return step{end: EndUnavailable}
	}
	r.c.MaxIterations++
	r.res.Limits.MaxIterations++
	if t.Commits == 0 {
		r.res.IterationsWithoutCommit--
	}
	return step{feedback: feedbackNext(r.lastFeedback)}
}

// switchAgent switches to the next agent; false: there is none.
func (r *runner) switchAgent(last Iteration, why string) bool {
	if r.c.Next == nil {
		return false
	}
	next, ok := r.c.Next(last)
	if !ok {
		return false
	}
	r.warn(fmt.Sprintf("agent %s %s; %s continues", r.choice(), why, next.Choice()))
	r.c.Agent, r.c.Options = next.Agent, next.Options
	r.agentStart, r.lastFailure, r.agentUsage = last.Number+1, "", agents.Usage{}
	return true
}

// agentBudget returns the budget of the current agent; zero: no limit of its own.
func (r *runner) agentBudget() Budget { return r.c.Shares[r.choice()] }

// choice returns the current agent and its model.
func (r *runner) choice() agents.Choice {
	return agents.Link{Agent: r.c.Agent, Options: r.c.Options}.Choice()
}

// lacksPermission reports whether missing permissions kept the agent from its work: another iteration would meet the same permissions.
func (r *runner) lacksPermission(t turn) bool { return len(t.Denied) > 0 && r.res.Work.Commits == 0 }

// decideMessage decides by the agent's latest message. A question and a "no change" need no signal.
func (r *runner) decideMessage(ctx context.Context, t turn) step {
	if question, ok := taggedAnswer(t.message, tagQuestion); ok && question != "" {
		r.res.Question = question
		return step{end: EndNeedsInfo}
	}
	reason, noChange := taggedAnswer(t.message, tagNoChange)
	hasWork := r.res.Work.Commits > 0
	switch {
	case t.Signal == "" && !noChange && r.lacksPermission(t):
		return step{end: EndDenied}
	case t.Signal == "" && !noChange:
		return r.iterateAgain(ctx, t, MissingSignal, feedbackNoSignal(r.c.Signals))
	case !hasWork && !noChange && !r.c.WithoutCommits && r.lacksPermission(t):
		return step{end: EndDenied}
	case !hasWork && !noChange && !r.c.WithoutCommits:
		return r.iterateAgain(ctx, t, MissingCommits, feedbackNoCommits)
	}
	if r.c.Accept != nil && hasWork {
		if advice := r.c.Accept(ctx); advice != "" {
			r.res.Refusal = neutral.Excerpt(advice, 1000)
			return r.iterateAgain(ctx, t, MissingAccept, r.res.Refusal)
		}
	}
	end := EndDone
	if !hasWork && noChange {
		end = EndNoChange
	}
	s := r.finish(ctx, t, end)
	if s.end == EndNoChange {
		r.res.Reason = reason
	}
	return s
}

// decideOutput decides about a run with structured output, which needs neither commits nor the signal.
func (r *runner) decideOutput(ctx context.Context, t turn) step {
	value, err := r.c.Output.extract(t.prose)
	r.res.Output = &value
	if err != nil {
		return step{end: EndOutput, err: err}
	}
	return r.finish(ctx, t, EndDone)
}

// finish ends the run if the gate passes.
func (r *runner) finish(ctx context.Context, t turn, end End) step {
	switch s := r.runGate(ctx, t.Number); {
	case s.end != "":
		return s
	case r.c.Unchanged != nil && r.c.Unchanged(t.Commits, r.res.Gate):
		return step{end: EndUnchanged}
	case !r.res.GatePassed():
		return r.iterateAgain(ctx, t, MissingGate, feedbackGate(r.res.Gate))
	}
	if r.c.Verify == nil || r.res.Work.Commits == 0 {
		return step{end: end}
	}
	advice := r.c.Verify(ctx)
	r.countUsageOutside()
	if s := r.endIfStopped(ctx); s.end != "" {
		return s
	}
	if advice != "" {
		r.res.Refusal = neutral.Terminal(advice)
		return r.iterateAgain(ctx, t, MissingVerify, r.res.Refusal)
	}
	return step{end: end}
}

// iterateAgain starts another iteration, unless a limit is reached. If commits exist, a limit other than the budget ends the run
// only after the gate has run on them.
func (r *runner) iterateAgain(ctx context.Context, t turn, missing Missing, feedback string) step {
	end := r.reachedLimit(ctx, t.Number)
	lastIteration := t.Iteration
	lastIteration.Failure = nil // the refusal may have caused it
	switch {
	case end == "" && !r.agentBudget().Exhausted(r.agentUsage):
		return step{feedback: feedback}
	case end == "" && r.switchAgent(lastIteration, "has used up its own budget"):
		return step{feedback: feedbackNext(feedback)}
	case end == "":
		end, r.res.AgentBudgetExhausted = EndBudget, true
	}
	if end != EndBudget && r.res.Work.Commits > 0 && !r.gatedInTurn {
		if s := r.runGate(ctx, t.Number); s.end != "" {
			return s
		}
	}
	r.res.Missing = missing
	return step{end: end}
}

// budgetSpent reports whether, with this usage, the budget or a limit shared with other runs is used up.
func (r *runner) budgetSpent(ctx context.Context, used agents.Usage) bool {
	if r.c.Budget.Exhausted(used) {
		return true
	}
	if r.c.Meter != nil && r.res.SharedLimitError == nil {
		// Usage that only an agent reports does not stop other runs, since the agent may lie.
		r.res.SharedLimitError = r.c.Meter.SharedLimitError(context.WithoutCancel(ctx), used.Minus(r.res.Unmetered))
	}
	return r.res.SharedLimitError != nil
}

func (r *runner) reachedLimit(ctx context.Context, n int) End {
	switch {
	case r.budgetSpent(ctx, r.res.Usage):
		return EndBudget
	case n >= r.c.MaxIterations:
		return EndMaxIterations
	case r.c.NoProgress > 0 && r.res.IterationsWithoutCommit >= r.c.NoProgress:
		return EndNoProgress
	}
	return ""
}

// runGate runs the gate and stores its result. Only a gate that could not run ends the run.
func (r *runner) runGate(ctx context.Context, n int) step {
	checks, err := r.checks(ctx, EventGate, n, fmt.Sprintf("gate-%d", n), r.c.Gate)
	if err != nil {
		return r.endBroken(ctx, err)
	}
	r.res.Gate, r.res.GateRan, r.gatedInTurn = checks, true, true
	return step{}
}
