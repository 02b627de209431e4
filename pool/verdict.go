package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// unavailableFor is how long an agent that does not say when it is back is left alone.
const unavailableFor = 5 * time.Minute

// maxFailures is how many failed runs in a row, counted as attempts or not, make an issue a person's.
const maxFailures = 10

// judge says what the loop's end means for the issue.
func (w *worker) judge(lr loop.Result) Verdict {
	v := Verdict{
		Outcome: outcomeOf(lr), Tip: lr.Work.Tip, Commits: lr.Work.Commits,
		Iterations: lr.Iterations, Gate: lr.Gate, GateRan: lr.GateRan, Message: lr.Message, Question: lr.Question,
		Warnings: lr.Warnings, Usage: lr.Usage,
	}
	switch {
	case lr.Err != nil:
		v.Reason = lr.Err.Error()
	case v.Outcome == NoChange:
		v.Reason = lr.Reason
	}
	switch {
	case w.filled() && !finished(lr.End):
		if lr.End != loop.EndInterrupted && v.Reason != "" { // such as a hand-back that finds no room
			v.Warnings = append(v.Warnings, v.Reason)
		}
		w.stoppedAs(&v, "")
	case v.Outcome == Interrupted:
		w.stoppedAs(&v, v.Reason)
	}
	v.Counted = v.Outcome.usesAttempt() && !ralphsFault(lr.End) && (lr.Failure == nil || lr.Failure.Class != agents.NotStarted)
	if lr.Failure != nil {
		v.RetryAt = lr.Failure.ResetAt
	}
	return v
}

// stoppedAs makes the verdict that of a run that was asked to end; otherwise is the reason when nobody asked.
func (w *worker) stoppedAs(v *Verdict, otherwise string) {
	var over *supersededError
	v.Outcome, v.Reason = Interrupted, otherwise
	cause := w.stop.cause()
	if cause != nil {
		v.Reason = cause.Error()
	}
	switch {
	case errors.As(cause, &over):
		v.Outcome = Superseded
	case w.filled():
		v.Outcome, v.FilledDisk = OverBudget, true
	}
}

// interrupted changes the verdict of a run that was stopped before it was published.
func (w *worker) interrupted() {
	v := &w.rec.Verdict
	w.stoppedAs(v, "ralph was stopped")
	v.Counted = false
}

// ralphsFault reports the ends that say nothing about the agent's work: they use up no attempt.
func ralphsFault(e loop.End) bool {
	switch e {
	case loop.EndSetup, loop.EndPrompt, loop.EndSandbox, loop.EndHandBack:
		return true
	}
	return false
}

// decide says who is next: a person, or ralph and when. It is called when nothing can change the outcome any more.
func (w *worker) decide(ctx context.Context) error {
	v := &w.rec.Verdict
	now := time.Now()
	v.Final = false // a run that is taken up after a crash may have decided otherwise before
	switch v.Outcome {
	case Succeeded, NoChange, OverBudget, NeedsInfo, PolicyBlocked:
		v.Final = true
	case AgentUnavailable:
		if v.passes() && !v.RetryAt.After(now) {
			v.RetryAt = now.Add(unavailableFor)
		}
	case Failed, GateFailed:
		earlier, err := w.p.cfg.Journal.Runs(ctx, w.rec.Key)
		if err != nil {
			return err
		}
		// Failures that use up no attempt end too: something is wrong that does not pass.
		v.Final = v.Tries >= maxTries || v.Counted && w.rec.Attempt >= w.p.cfg.Retry.MaxAttempts || failures(earlier)+1 >= maxFailures
		if v.Final {
			break
		}
		v.RetryAt = now.Add(w.p.cfg.Retry.delay(failures(earlier)))
	}
	return nil
}

// delay is the time to wait after n failures before the present one.
func (r Retry) delay(n int) time.Duration {
	d := r.Backoff
	for range n {
		if d *= 2; d >= r.BackoffMax {
			return r.BackoffMax
		}
	}
	return min(d, r.BackoffMax)
}

// failures counts the failed runs since a person last had the issue.
func failures(runs []Record) int {
	n := 0
	for _, r := range runs {
		switch {
		case r.Ended.IsZero():
		case r.Verdict.Final:
			n = 0
		case r.Verdict.Outcome == Failed || r.Verdict.Outcome == GateFailed:
			n++
		}
	}
	return n
}

// nextAttempt numbers the next run of an issue.
func nextAttempt(runs []Record) int {
	n := 1
	for _, r := range runs {
		switch {
		case r.Ended.IsZero():
		case r.Verdict.Final:
			n = 1
		case r.Verdict.Counted:
			n++
		}
	}
	return n
}

func lastEnded(runs []Record) (Record, bool) {
	for i := len(runs) - 1; i >= 0; i-- {
		if !runs[i].Ended.IsZero() {
			return runs[i], true
		}
	}
	return Record{}, false
}

// budgetLeft is what the earlier attempts have left of its budget.
func (w *worker) budgetLeft(ctx context.Context) (loop.Budget, error) {
	left := w.p.cfg.Budget
	if left == (loop.Budget{}) {
		return left, nil
	}
	earlier, err := w.p.cfg.Journal.Runs(ctx, w.rec.Key)
	if err != nil {
		return left, fmt.Errorf("budget: %w", err)
	}
	var spent agents.Usage
	for _, r := range earlier {
		spent = spent.Add(r.Verdict.Usage)
		if r.Verdict.Final {
			spent = agents.Usage{}
		}
	}
	if left.Tokens > 0 {
		left.Tokens = max(1, left.Tokens-spent.Input-spent.Output-spent.CacheWrite)
	}
	if left.CostUSD > 0 {
		left.CostUSD = max(0.000001, left.CostUSD-spent.CostUSD)
	}
	return left, nil
}
