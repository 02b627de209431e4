package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/tracker"
)

// Budgets has the limits of a run.
type Budgets struct {
	Issue, Run loop.Budget
	Earlier    agents.Usage // usage of the issue's budget by earlier runs
}

// Loop describes a loop's result in one line for people; "" if nothing went wrong.
func Loop(agent string, r loop.Result, b Budgets) string {
	if n := len(r.Iterations); n > 0 {
		agent = cmp.Or(r.Iterations[n-1].Agent, agent)
	}
	switch r.End {
	case loop.EndDone, loop.EndNoChange:
		return ""
	case loop.EndNeedsInfo:
		return "the agent asks: " + shorten(r.Question, 300)
	case loop.EndTimeout:
		return fmt.Sprintf("the run took longer than %s; raise %s if it needs more", r.Limits.Timers.Run, r.End)
	case loop.EndDenied:
		d := r.Denied[0]
		return fmt.Sprintf("the agent may not use %s (%s), and nobody can allow it; skip permissions, or choose a sandbox that isolates",
			shorten(d.Tool, 60), shorten(d.Detail, 200))
	case loop.EndUnavailable, loop.EndAgent:
		which := fmt.Sprintf("iteration %d", len(r.Iterations))
		if n := len(r.Iterations); r.Repeated && n > 1 {
			which = fmt.Sprintf("iterations %d and %d, without a new commit", n-1, n)
		}
		return which + ": " + explainFailure(agent, r)
	case loop.EndSetup:
		c := r.Setup[len(r.Setup)-1]
		return fmt.Sprintf("setup `%s` %s: %s", shorten(c.Command, 100), c.Failure(), lastWords(c.Tail))
	case loop.EndUnchanged:
		c := r.Gate[len(r.Gate)-1]
		return fmt.Sprintf("gate `%s` %s just as on the base, twice in a row with new commits: "+
			"no agent can change that, so check this line of the gate; its output: %s",
			shorten(c.Command, 100), c.Failure(), lastWords(c.Tail))
	case loop.EndMaxIterations, loop.EndNoProgress, loop.EndBudget:
		return explainLimit(r, b) + explainLast(agent, r)
	}
	if r.Err != nil {
		return r.Err.Error()
	}
	return string(r.End)
}

func explainLimit(r loop.Result, b Budgets) string {
	whole, earlier := b.Issue, b.Earlier
	used := r.Usage.Add(earlier)
	switch {
	case r.AgentBudgetExhausted:
		return fmt.Sprintf("agent %s has spent its own budget, and no other agent continues", r.Iterations[len(r.Iterations)-1].Choice())
	case r.End == loop.EndMaxIterations && !slices.ContainsFunc(r.Iterations, func(t loop.Iteration) bool { return t.Failure == nil }):
		return "every iteration failed"
	case r.End == loop.EndMaxIterations:
		return fmt.Sprintf("not done after %d of %d iterations; raise --%s to continue", len(r.Iterations), r.Limits.MaxIterations, r.End)
	case r.End == loop.EndNoProgress:
		return fmt.Sprintf("no new commit in %d iterations in a row", r.IterationsWithoutCommit)
	case loop.Budget{Tokens: whole.Tokens}.Exhausted(used):
		return fmt.Sprintf("%d tokens spent of %d%s%s; raise the token budget to continue",
			used.Tokens(), whole.Tokens, ofEarlier(earlier.Tokens() > 0, "%d", earlier.Tokens()), byEstimate(used))
	case whole.Exhausted(used):
		return fmt.Sprintf("%s spent of %s%s%s; raise the cost budget to continue", ledger.USD(used.CostUSD), ledger.USD(whole.CostUSD),
			ofEarlier(earlier.CostUSD > 0, "%s", ledger.USD(earlier.CostUSD)), byEstimate(used))
	case loop.Budget{Tokens: b.Run.Tokens}.Exhausted(r.Usage):
		return fmt.Sprintf("%d tokens spent of the %d that a run may use%s; raise that limit to continue",
			r.Usage.Tokens(), b.Run.Tokens, byEstimate(r.Usage))
	case b.Run.Exhausted(r.Usage):
		return fmt.Sprintf("%s spent of the %s that a run may cost%s; raise that limit to continue",
			ledger.USD(r.Usage.CostUSD), ledger.USD(b.Run.CostUSD), byEstimate(r.Usage))
	case r.SharedLimitError != nil:
		return r.SharedLimitError.Error()
	case loop.Budget{Tokens: r.Limits.Budget.Tokens}.Exhausted(r.Usage):
		return fmt.Sprintf("%d tokens are spent, which is all that the cap for all runs had left for this one", r.Usage.Tokens())
	}
	return ledger.USD(r.Usage.CostUSD) + " are spent, which is all that the cap for all runs had left for this one"
}

// ofEarlier says how much of the amount earlier runs have used, if some is set.
func ofEarlier(some bool, format string, amount any) string {
	if !some {
		return ""
	}
	return fmt.Sprintf(", "+format+" of them by earlier runs", amount)
}

// byEstimate says how many tokens are an estimate.
func byEstimate(used agents.Usage) string {
	if used.Estimated == 0 {
		return ""
	}
	return fmt.Sprintf(" (an estimate for %d tokens)", used.Estimated)
}

// explainLast says why the last iteration before a limit did not finish the work.
func explainLast(agent string, r loop.Result) string {
	last := ""
	switch {
	case r.Failure != nil && r.End == loop.EndBudget: // its request to the service was refused
		return ""
	case r.Failure != nil:
		last = explainFailure(agent, r)
	case r.GateRan && !r.GatePassed():
		failing := r.Gate[len(r.Gate)-1]
		last = fmt.Sprintf("gate `%s` %s", shorten(failing.Command, 100), failing.Failure())
	case r.Missing == loop.MissingSignal:
		last = "the agent did not give the completion signal"
	case r.Missing == loop.MissingBudget:
		last = "the agent spent the budget of one iteration"
	case r.Missing == loop.MissingCommits:
		last = "the agent said that it is done, but made no commits"
	case r.Missing == loop.MissingAccept, r.Missing == loop.MissingVerify:
		last = shorten(r.Refusal, 300)
	default:
		return ""
	}
	return " (last: " + last + ")"
}

// Ending describes how an iteration's agent ended; "" if its failure says it.
func Ending(it loop.Iteration) string {
	switch it.Ending {
	case loop.EndingExit:
		return "ended by itself"
	case loop.EndingGrace:
		return "killed after its completion signal, because it did not end"
	case loop.EndingIdle, loop.EndingIteration, loop.EndingNotStarted:
		if it.Failure != nil {
			return ""
		}
	case loop.EndingBudget, loop.EndingIterationBudget, loop.EndingAgentBudget:
		return "killed, because its budget was spent (" + string(it.Ending) + ")"
	case loop.EndingRun:
		return "killed, because the run took too long"
	case loop.EndingInterrupted:
		return "ended, because the run was stopped"
	}
	return string(it.Ending)
}

// Failure describes an agent's failure, with its class if that adds something to the message.
func Failure(f *agents.Failure) string {
	if (f.Class == agents.OtherFailure || f.Class == agents.NotStarted) && f.Message != "" || strings.HasPrefix(f.Message, string(f.Class)) {
		return f.Message
	}
	return f.Error()
}

func explainFailure(agent string, r loop.Result) string {
	why := fmt.Sprintf("agent %s: %s", agent, Failure(r.Failure))
	ending := r.Iterations[len(r.Iterations)-1].Ending
	if ending == loop.EndingIdle || ending == loop.EndingIteration {
		why += fmt.Sprintf("; raise %s if it needs longer", ending)
	}
	return why
}

// lastWords returns the end of a command's output in one line, without pip's unhelpful lines after its errors.
func lastWords(tail string) string {
	if before, after, found := strings.Cut(tail, "\nerror: subprocess-exited-with-error\n"); found && strings.Contains(after, "See above for output") {
		tail = before
	}
	lines := slices.DeleteFunc(strings.Split(tail, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "[notice]") || strings.HasPrefix(strings.TrimSpace(line),
			"note: This error originates from a subprocess")
	})
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "ERROR: ") }); i >= 0 {
		lines = lines[i:]
	}
	text := []rune(oneLine(strings.Join(lines, "\n")))
	switch {
	case len(text) == 0:
		return "it printed nothing"
	case len(text) > 300:
		return "…" + string(text[len(text)-300:])
	}
	return string(text)
}

func oneLine(s string) string {
	s, _ = tracker.Clean(s)
	return strings.Join(strings.Fields(s), " ")
}

func shorten(s string, limit int) string {
	text := []rune(oneLine(s))
	if len(text) > limit {
		return string(text[:limit]) + "…"
	}
	return string(text)
}
