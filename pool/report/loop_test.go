package report

import (
	"errors"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

func TestLoop(t *testing.T) {
	t.Parallel()
	one := []loop.Iteration{{Number: 1, Ending: loop.EndingExit}}
	other := &agents.Failure{Class: agents.OtherFailure, Message: "exit status 2"}
	failing := []loop.Check{{Command: "true"}, {Command: "make\ntest", ExitCode: 1, Tail: "expected 1,\n\x1b[31mgot 2\n"}}
	pip := []loop.Check{{Command: "pip install", ExitCode: 1, Tail: "WARNING: Retrying (Retry(total=0))\nERROR: Could not find a version\n" +
		"ERROR: No matching distribution found for x\n\n[notice] A new release of pip is available\n[notice] To update, run: pip\n"}}
	build := []loop.Check{{Command: "pip install .", ExitCode: 1, Tail: "  error: subprocess-exited-with-error\n  ╰─> [1 lines of output]\n      ValueError: no version\n      [end of output]\n" +
		"  \n  note: This error originates from a subprocess, and is likely not a problem with pip.\nerror: subprocess-exited-with-error\n\n× Building did not run.\n╰─> See above for output.\n"}}
	for want, r := range map[string]loop.Result{
		"setup `pip install .` failed with exit status 1: error: subprocess-exited-with-error ╰─> [1 lines of output] ValueError: no version [end of output]": {
			End: loop.EndSetup, Setup: build},
		"setup `pip install` failed with exit status 1: ERROR: Could not find a version ERROR: No matching distribution found for x": {
			End: loop.EndSetup, Setup: pip},
		"":                              {End: loop.EndDone},
		"the agent asks: Which colour?": {End: loop.EndNeedsInfo, Question: "Which\ncolour?"},
		"the run took longer than 4h0m0s; raise run-timeout if it needs more": {End: loop.EndTimeout, Limits: loop.Limits{Timers: loop.Timers{Run: 4 * time.Hour}}},
		"the agent may not use Bash (git commit), and nobody can allow it; skip permissions, or choose a sandbox that isolates": {
			End: loop.EndDenied, Denied: []agents.Denial{{Tool: "Bash", Detail: "git commit"}}},
		"iteration 1: agent x: exit status 2": {End: loop.EndAgent, Iterations: one, Failure: other},
		"iterations 1 and 2, without a new commit: agent x: exit status 2": {
			End: loop.EndAgent, Iterations: []loop.Iteration{{}, {}}, Failure: other, Repeated: true},
		"iteration 1: agent x: no such program": {
			End: loop.EndUnavailable, Iterations: one, Failure: &agents.Failure{Class: agents.NotStarted, Message: "no such program"}},
		"setup `make test` failed with exit status 1: expected 1, [31mgot 2": {End: loop.EndSetup, Setup: failing},
		"not done after 1 of 3 iterations; raise --max-iterations to continue (last: agent x: killed: silent; raise idle-timeout if it needs longer)": {
			End: loop.EndMaxIterations, Limits: loop.Limits{MaxIterations: 3}, Failure: &agents.Failure{Class: agents.Killed, Message: "silent"},
			Iterations: []loop.Iteration{{Ending: loop.EndingIdle}}},
		"every iteration failed (last: agent x: exit status 2)": {
			End: loop.EndMaxIterations, Limits: loop.Limits{MaxIterations: 2}, Failure: other, Iterations: []loop.Iteration{{Failure: other}, {Failure: other}}},
		"no new commit in 3 iterations in a row (last: the agent did not give the completion signal)": {
			End: loop.EndNoProgress, IterationsWithoutCommit: 3, Missing: loop.MissingSignal},
		"no new commit in 3 iterations in a row (last: the agent said that it is done, but made no commits)": {
			End: loop.EndNoProgress, IterationsWithoutCommit: 3, Missing: loop.MissingCommits},
		"no new commit in 3 iterations in a row (last: a nested repository)": {
			End: loop.EndNoProgress, IterationsWithoutCommit: 3, Missing: loop.MissingAccept, Refusal: "a nested repository"},
		"no new commit in 3 iterations in a row (last: gate `make test` failed with exit status 1)": {
			End: loop.EndNoProgress, IterationsWithoutCommit: 3, Missing: loop.MissingGate, GateRan: true, Gate: failing},
		"gate `make test` failed with exit status 1 just as on the base, twice in a row with new commits: no agent can change that, " +
			"so check this line of the gate; its output: expected 1, [31mgot 2": {End: loop.EndUnchanged, GateRan: true, Gate: failing},
		"30 tokens spent of 25; raise the token budget to continue": {
			End: loop.EndBudget, Usage: agents.Usage{Input: 20, Output: 10}, Limits: loop.Limits{Budget: loop.Budget{Tokens: 25}}},
		"$2.50 spent of $2.00; raise the cost budget to continue": {
			End: loop.EndBudget, Usage: agents.Usage{CostUSD: 2.5}, Limits: loop.Limits{Budget: loop.Budget{CostUSD: 2}}},
		"disk full": {End: loop.EndImport, Err: errors.New("disk full")},
	} {
		if got := Loop("x", r, Budgets{Issue: r.Limits.Budget}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// The usage of earlier runs is mentioned, and also if another budget than the issue's own was used up.
func TestSpentBudgets(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		left, whole, run loop.Budget
		used             agents.Usage
		earlier          agents.Usage
		full             error
	}{
		"6210 tokens spent of 6000, 2484 of them by earlier runs; raise the token budget to continue": {
			loop.Budget{Tokens: 3516}, loop.Budget{Tokens: 6000}, loop.Budget{}, agents.Usage{Input: 3726}, agents.Usage{Input: 2484}, nil},
		"$2.50 spent of $2.00, $1.00 of them by earlier runs; raise the cost budget to continue": {
			loop.Budget{CostUSD: 1}, loop.Budget{CostUSD: 2}, loop.Budget{}, agents.Usage{CostUSD: 1.5}, agents.Usage{CostUSD: 1}, nil},
		"1500 tokens spent of the 1500 that a run may use; raise that limit to continue": {
			loop.Budget{Tokens: 1500}, loop.Budget{Tokens: 6000}, loop.Budget{Tokens: 1500}, agents.Usage{Input: 1500}, agents.Usage{Input: 2484}, nil},
		"$1.50 spent of the $1.00 that a run may cost; raise that limit to continue": {
			loop.Budget{CostUSD: 1}, loop.Budget{CostUSD: 9}, loop.Budget{CostUSD: 1}, agents.Usage{CostUSD: 1.5}, agents.Usage{CostUSD: 3}, nil},
		"the day is over": {
			loop.Budget{Tokens: 3000}, loop.Budget{Tokens: 6000}, loop.Budget{}, agents.Usage{Input: 2000}, agents.Usage{Input: 2000}, errors.New("the day is over")},
		"3100 tokens are spent, which is all that the cap for all runs had left for this one": {
			loop.Budget{Tokens: 3000}, loop.Budget{Tokens: 6000}, loop.Budget{}, agents.Usage{Input: 3100}, agents.Usage{}, nil},
		"$0.50 are spent, which is all that the cap for all runs had left for this one": {
			loop.Budget{CostUSD: 0.5}, loop.Budget{}, loop.Budget{}, agents.Usage{CostUSD: 0.5}, agents.Usage{}, nil},
	} {
		r := loop.Result{
			End: loop.EndBudget, Usage: c.used, Limits: loop.Limits{Budget: c.left}, SharedLimitError: c.full,
			Iterations: []loop.Iteration{{}}, Failure: &agents.Failure{Class: agents.Auth, Message: "refused; log in"}, // failure of the request
		}
		if got := Loop("x", r, Budgets{Issue: c.whole, Run: c.run, Earlier: c.earlier}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
