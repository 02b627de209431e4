package loop

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/agents"
)

// step is what follows an iteration: an end, or another iteration with feedback.
type step struct {
	end      End
	feedback string
}

// judge decides by facts what follows an iteration whose commits have been taken back.
func (r *runner) judge(ctx context.Context, t turn) (step, error) {
	if end, err := r.stopped(ctx); end != "" {
		return step{end: end}, err
	}
	if t.broken != nil {
		return step{end: EndSandbox}, fmt.Errorf("iteration %d: %w", t.Number, t.broken)
	}
	if t.Failure != nil {
		return r.judgeFailure(ctx, t)
	}
	r.failed = ""
	if r.c.Output != nil {
		return r.judgeOutput(ctx, t)
	}
	if t.Signal == "" {
		return r.again(ctx, t, feedbackNoSignal(r.c.Signals))
	}
	return r.judgeSignal(ctx, t)
}

func (r *runner) judgeFailure(ctx context.Context, t turn) (step, error) {
	f := t.Failure
	err := fmt.Errorf("iteration %d: agent %s: %w", t.Number, r.c.Agent.Name(), f)
	switch {
	case f.Class.Unavailable() || f.Class == agents.NotStarted && r.untouched(t):
		return step{end: EndUnavailable}, err
	case f.Class.Fatal():
		return step{end: EndAgent}, err
	}
	kind := t.Ending + " " + string(f.Class)
	if kind == r.failed && t.Commits == 0 {
		return step{end: EndAgent}, fmt.Errorf("twice in a row without a new commit: %w", err)
	}
	r.failed = kind
	return r.again(ctx, t, feedbackFailure(f))
}

// untouched reports that no agent has changed anything yet: a program that cannot be started then can be started for no
// issue. Later it may be this run's own doing.
func (r *runner) untouched(t turn) bool { return t.Number == 1 && r.res.Work.Commits == 0 }

func (r *runner) judgeSignal(ctx context.Context, t turn) (step, error) {
	if question, ok := answer(t.message, "needs-info"); ok && question != "" {
		r.res.Question = question
		return step{end: EndNeedsInfo}, fmt.Errorf("the agent asks: %s", oneLine(question, 300))
	}
	reason, noChange := answer(t.message, "no-change")
	if r.res.Work.Commits == 0 && !noChange && !r.c.WithoutCommits {
		return r.again(ctx, t, feedbackNoCommits())
	}
	if r.c.Accept != nil && r.res.Work.Commits > 0 {
		if err := r.c.Accept(ctx); err != nil {
			return r.again(ctx, t, oneLine(err.Error(), 1000))
		}
	}
	if end, err := r.runGate(ctx, t.Number); end != "" {
		return step{end: end}, err
	}
	if !r.res.GatePassed() {
		return r.again(ctx, t, feedbackGate(r.res.Gate))
	}
	if r.res.Work.Commits == 0 && noChange {
		r.res.Reason = reason
		return step{end: EndNoChange}, nil
	}
	return step{end: EndDone}, nil
}

// judgeOutput decides a run that was asked for structured output: the output is its fact, commits are welcome but not
// needed, and so is the signal.
func (r *runner) judgeOutput(ctx context.Context, t turn) (step, error) {
	value, err := r.c.Output.extract(t.prose)
	r.res.Output = &value
	if err != nil {
		return step{end: EndOutput}, err
	}
	if end, err := r.runGate(ctx, t.Number); end != "" {
		return step{end: end}, err
	}
	if !r.res.GatePassed() {
		return r.again(ctx, t, feedbackGate(r.res.Gate))
	}
	return step{end: EndDone}, nil
}

// again starts another iteration, unless a limit is reached. Where commits exist, a limit ends the run only after the
// gate has told what they are worth.
func (r *runner) again(ctx context.Context, t turn, feedback string) (step, error) {
	end, why := r.limit(t.Number)
	if end == "" {
		return step{feedback: feedback}, nil
	}
	if end != EndBudget && r.res.Work.Commits > 0 && !r.gatedInTurn {
		if end, err := r.runGate(ctx, t.Number); end != "" {
			return step{end: end}, err
		}
	}
	if t.Failure != nil {
		why = fmt.Errorf("%w (last: agent %s: %w)", why, r.c.Agent.Name(), t.Failure)
	} else if r.res.GateRan && !r.res.GatePassed() {
		failing := r.res.Gate[len(r.res.Gate)-1]
		why = fmt.Errorf("%w (last: gate `%s` %s)", why, oneLine(failing.Command, 100), outcome(failing))
	} else if r.c.Output == nil {
		why = fmt.Errorf("%w (last: %s)", why, r.unsettled(t, feedback))
	}
	return step{end: end}, why
}

// unsettled says why an iteration that had no failure, and no failing gate, was not the last.
func (r *runner) unsettled(t turn, feedback string) string {
	switch {
	case t.Signal == "":
		return fmt.Sprintf("the agent did not say `%s`", oneLine(r.c.Signals[0], 100))
	case r.res.Work.Commits == 0:
		return "the agent said that it is done, but made no commits"
	}
	return oneLine(feedback, 300) // of Accept
}

func (r *runner) limit(n int) (End, error) {
	used, b := r.res.Usage, r.c.Budget
	tokens := used.Input + used.Output + used.CacheWrite
	switch {
	case b.Tokens > 0 && tokens >= b.Tokens:
		return EndBudget, fmt.Errorf("%d tokens spent of %d; raise the token budget to go on", tokens, b.Tokens)
	case b.CostUSD > 0 && used.CostUSD >= b.CostUSD:
		return EndBudget, fmt.Errorf("$%.2f spent of $%.2f; raise the cost budget to go on", used.CostUSD, b.CostUSD)
	case n >= r.c.MaxIterations:
		return EndMaxed, fmt.Errorf("not done after %d of %d iterations; raise max-iterations to go on", n, r.c.MaxIterations)
	case r.c.NoProgress > 0 && r.fruitless >= r.c.NoProgress:
		return EndNoProgress, fmt.Errorf("no new commit in %d iterations in a row", r.fruitless)
	}
	return "", nil
}

// runGate runs the gate and keeps what it says. An empty End means that it ran.
func (r *runner) runGate(ctx context.Context, n int) (End, error) {
	checks, err := r.gate(ctx, n)
	if err != nil {
		return r.broken(ctx, err)
	}
	r.res.Gate, r.res.GateRan, r.gatedInTurn = checks, true, true
	return "", nil
}
