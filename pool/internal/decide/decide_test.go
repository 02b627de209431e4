package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

var (
	now    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	green  = []loop.Check{{Command: "make"}}
	red    = []loop.Check{{Command: "lint"}, {Command: "make", ExitCode: 2}}
	hung   = []loop.Check{{Command: "make", TimedOut: true}}
	limits = journal.Limits{MaxAttempts: 3, Backoff: time.Minute, BackoffMax: 5 * time.Minute}
	ends   = []loop.End{
		loop.EndDone, loop.EndNoChange, loop.EndNeedsInfo, loop.EndMaxIterations, loop.EndNoProgress, loop.EndBudget, loop.EndTimeout, loop.EndUnavailable,
		loop.EndAgent, loop.EndSetup, loop.EndPrompt, loop.EndSandbox, loop.EndImport, loop.EndOutput, loop.EndInterrupted, loop.EndDenied,
		loop.EndUnchanged, loop.EndKilled,
	}
	stops = []journal.Stop{
		journal.StopShutdown, journal.StopAsked, journal.StopClaimLost, journal.StopMoved, journal.StopSuperseded, journal.StopDisk, journal.StopCrash,
	}
	faults = []journal.FaultKind{journal.FaultOther, journal.FaultAgent, journal.FaultSandbox, journal.FaultBase, journal.FaultLost, journal.FaultUndone, journal.FaultUnavailable}
)

// If another machine has reported the outcome of a dead run, that is the outcome.
func TestReportedElsewhere(t *testing.T) {
	t.Parallel()
	f := journal.Facts{Reported: journal.Succeeded, Stop: journal.StopClaimLost, StoppedStage: journal.StagePublish}
	if got := Verdict(f); got != final(want(journal.Succeeded, "", "")) {
		t.Errorf("%+v", got)
	}
	// The reason why a person has to look is kept.
	plain := journal.Facts{End: loop.EndDone, Commits: 1, Tip: "t", Done: true, Outdated: true}
	told := plain
	told.Reported, told.Stop, told.StoppedStage = Verdict(plain).Outcome, journal.StopClaimLost, journal.StageReport
	if got, before := Verdict(told), Verdict(plain); got != before || got.Reason.Code != journal.ReasonEdited {
		t.Errorf("%+v, was %+v", got, before)
	}
}

func code(n int) *int { return &n }

// decideCase is one way for a run to end. Unless want says otherwise the verdict is not final, does not count as an attempt and
// has no retry time.
type decideCase struct {
	name  string
	facts journal.Facts
	want  journal.Verdict
}

func want(o journal.Outcome, code journal.ReasonCode, detail string) journal.Verdict {
	return journal.Verdict{Outcome: o, Reason: journal.Reason{Code: code, Detail: detail}}
}

func final(v journal.Verdict) journal.Verdict   { v.Final = true; return v }
func counted(v journal.Verdict) journal.Verdict { v.Counted = true; return v }
func after(v journal.Verdict, d time.Duration) journal.Verdict {
	v.RetryAt = now.Add(d)
	return v
}

// again returns a failure that is tried again after the first wait.
func again(o journal.Outcome, code journal.ReasonCode, detail string) journal.Verdict {
	return after(want(o, code, detail), time.Minute)
}

// watched returns the facts of commits that passed, and of what they did to the checks.
func watched(w journal.Watch, files journal.GateFiles) journal.Facts {
	return journal.Facts{End: loop.EndDone, Commits: 1, Files: files, Verify: &journal.Verification{Checks: green}, Watch: &w}
}

// retested returns the facts of commits that passed, without a clean checkout, and of their tests.
func retested(end loop.End, r journal.Retest) journal.Facts {
	return journal.Facts{End: end, EndDetail: "d", Commits: 1, Tip: "t", GateRan: true, Gate: green, Retest: &r}
}

// reviewed returns the facts of commits that passed, and of their review.
func reviewed(end loop.End, r journal.Review) journal.Facts {
	return journal.Facts{End: end, EndDetail: "d", Commits: 1, Tip: "t", GateRan: true, Gate: green, Verify: &journal.Verification{Checks: green}, Review: &r}
}

func decideCases() []decideCase {
	succeeded := final(want(journal.Succeeded, "", ""))
	cases := []decideCase{
		// The loop ended by itself.
		{"done", journal.Facts{End: loop.EndDone, Commits: 1, GateRan: true, Gate: green}, succeeded},
		{"done without a gate", journal.Facts{End: loop.EndDone, Commits: 1}, succeeded},
		{"no change", journal.Facts{End: loop.EndNoChange, NoChange: "it is there"}, final(want(journal.NoChange, journal.ReasonAgentSaid, "it is there"))},
		{"question", journal.Facts{End: loop.EndNeedsInfo, Question: "which?"}, final(want(journal.NeedsInfo, journal.ReasonAgentSaid, "which?"))},
		{"cap", journal.Facts{End: loop.EndBudget, EndDetail: "100 tokens", Capped: true, Commits: 1}, want(journal.OverBudget, journal.ReasonCap, "100 tokens")},
		{"import without room", journal.Facts{End: loop.EndImport, EndDetail: "d", Starved: true, Commits: 1}, want(journal.EnvironmentUnavailable, journal.ReasonMachine, "d")},
		{"import without room, again and again", journal.Facts{End: loop.EndImport, EndDetail: "d", Starved: true, Failures: MaxFailures - 1}, final(want(journal.Failed, journal.ReasonLoop, "d"))},
		{"engine away", journal.Facts{End: loop.EndSandbox, EndDetail: "d", Starved: true, Commits: 1}, want(journal.EnvironmentUnavailable, journal.ReasonMachine, "d")},
		{"engine away, again and again", journal.Facts{End: loop.EndSandbox, EndDetail: "d", Starved: true, Failures: MaxFailures - 1}, final(want(journal.Failed, journal.ReasonLoop, "d"))},
		{"budget", journal.Facts{End: loop.EndBudget, EndDetail: "100 tokens", Commits: 1}, final(want(journal.OverBudget, journal.ReasonLoop, "100 tokens"))},
		{"permission denied", journal.Facts{End: loop.EndDenied, EndDetail: "d"}, final(counted(want(journal.Failed, journal.ReasonLoop, "d")))},
		{"gate fails as on the base", journal.Facts{End: loop.EndUnchanged, EndDetail: "d", Commits: 1, GateRan: true, Gate: red}, final(counted(want(journal.GateFailed, journal.ReasonLoop, "d")))},
		{"interrupted loop", journal.Facts{End: loop.EndInterrupted, EndDetail: "d"}, want(journal.Interrupted, journal.ReasonShutdown, "d")},
		{"no loop at all", journal.Facts{}, counted(again(journal.Failed, journal.ReasonLoop, ""))},
		{"unknown end", journal.Facts{End: "of a later ralph", EndDetail: "d"}, counted(again(journal.Failed, journal.ReasonLoop, "d"))},

		// The agent is not available.
		{"unavailable, cause unknown", journal.Facts{End: loop.EndUnavailable, EndDetail: "d"}, want(journal.AgentUnavailable, journal.ReasonLoop, "d")},
		{
			"rate limit with a time", journal.Facts{End: loop.EndUnavailable, Failure: &agents.Failure{Class: agents.RateLimit, ResetAt: now.Add(time.Hour)}},
			after(want(journal.AgentUnavailable, journal.ReasonLoop, ""), time.Hour),
		},
		{
			"rate limit whose time has passed", journal.Facts{End: loop.EndUnavailable, Failure: &agents.Failure{Class: agents.RateLimit, ResetAt: now.Add(-time.Hour)}},
			after(want(journal.AgentUnavailable, journal.ReasonLoop, ""), 5*time.Minute),
		},
		{
			"overload without a time", journal.Facts{End: loop.EndUnavailable, Failure: &agents.Failure{Class: agents.Overload}},
			after(want(journal.AgentUnavailable, journal.ReasonLoop, ""), 5*time.Minute),
		},
		{
			"several agents, of which one is back sooner",
			journal.Facts{End: loop.EndUnavailable, AvailableAt: now.Add(time.Minute), Failure: &agents.Failure{Class: agents.RateLimit, ResetAt: now.Add(time.Hour)}},
			after(want(journal.AgentUnavailable, journal.ReasonLoop, ""), time.Minute),
		},
		{
			"login that a person has to renew", journal.Facts{End: loop.EndUnavailable, Failure: &agents.Failure{Class: agents.Auth}},
			want(journal.AgentUnavailable, journal.ReasonLoop, ""),
		},
		{
			"program that is not there", journal.Facts{End: loop.EndUnavailable, Failure: &agents.Failure{Class: agents.NotStarted}},
			want(journal.AgentUnavailable, journal.ReasonLoop, ""),
		},

		// One iteration was asked for.
		{"optional signal", journal.Facts{End: loop.EndMaxIterations, Optional: true}, succeeded},
		{"optional signal, gate passed", journal.Facts{End: loop.EndMaxIterations, Optional: true, GateRan: true, Gate: green}, succeeded},
		{
			"optional signal, verification failed", journal.Facts{End: loop.EndMaxIterations, Optional: true, Verify: &journal.Verification{Checks: red}},
			counted(again(journal.GateFailed, journal.ReasonVerify, "make: exit status 2")),
		},
		{
			"optional signal, gate failed", journal.Facts{End: loop.EndMaxIterations, Optional: true, GateRan: true, Gate: red, Commits: 1, EndDetail: "d"},
			counted(again(journal.GateFailed, journal.ReasonLoop, "d")),
		},
		{
			"optional signal, agent failed", journal.Facts{End: loop.EndMaxIterations, Optional: true, Failure: &agents.Failure{Class: agents.OtherFailure}},
			counted(again(journal.Failed, journal.ReasonLoop, "")),
		},

		// The gate on a clean checkout.
		{"verified", journal.Facts{End: loop.EndDone, Verify: &journal.Verification{Checks: green}}, succeeded},
		{"verified, nothing watched", watched(journal.Watch{}, ""), succeeded},
		{
			"tests were added, and pass without as well",
			watched(journal.Watch{Added: 1, Files: []journal.Watched{{Path: "x_test.go", Test: true, OnlyAdded: true}}, Base: &journal.Verification{Checks: green}}, ""), succeeded,
		},
		{
			"a test was changed, and passes as it was, too",
			watched(journal.Watch{Files: []journal.Watched{{Path: "x_test.go", Test: true}}, Base: &journal.Verification{Checks: green}}, ""),
			final(want(journal.Succeeded, journal.ReasonChecks, "x_test.go")),
		},
		{"the issue has changed", journal.Facts{End: loop.EndDone, Commits: 2, Outdated: true}, final(want(journal.Succeeded, journal.ReasonEdited, ""))},
		{"nothing was changed", journal.Facts{End: loop.EndDone, Commits: 2, Unchanged: true}, final(want(journal.NoChange, journal.ReasonUnchanged, ""))},
		{
			"nothing was changed, and the gate fails", journal.Facts{End: loop.EndDone, Commits: 2, Unchanged: true, Verify: &journal.Verification{Checks: red}},
			counted(again(journal.GateFailed, journal.ReasonVerify, "make: exit status 2")),
		},
		{
			"the gate passes over a failing test", watched(journal.Watch{Canaries: []journal.Canary{{Path: "a", Noticed: true}, {Path: "b"}}}, ""),
			counted(again(journal.GateFailed, journal.ReasonCanary, "b")),
		},
		{
			"never done, and the gate passes over a failing test",
			journal.Facts{End: loop.EndMaxIterations, Commits: 1, Verify: &journal.Verification{Checks: green}, Watch: &journal.Watch{Canaries: []journal.Canary{{Path: "b"}}}},
			counted(again(journal.GateFailed, journal.ReasonCanary, "b")),
		},
		{
			"checks have changed", watched(journal.Watch{Files: []journal.Watched{{Path: "Makefile"}, {Path: "t", Test: true}}}, ""),
			final(want(journal.Succeeded, journal.ReasonChecks, "Makefile, t")),
		},
		{
			"much has changed", watched(journal.Watch{Findings: []string{"1", "2", "3", "4"}, Files: []journal.Watched{{Path: "t", Test: true}}}, ""),
			final(want(journal.Succeeded, journal.ReasonChecks, "1, 2, 3 and 1 more")),
		},
		{
			"the checks as they were fail", watched(journal.Watch{Files: []journal.Watched{{Path: "t", Test: true}}, Base: &journal.Verification{Checks: red}}, ""),
			final(want(journal.Succeeded, journal.ReasonChecks, "t")),
		},
		{
			"the checks as they were fail, and have to pass",
			watched(journal.Watch{Files: []journal.Watched{{Path: "t", Test: true}}, Base: &journal.Verification{Checks: red}}, journal.GateFilesRequire),
			counted(again(journal.GateFailed, journal.ReasonBaseChecks, "make: exit status 2")),
		},
		{
			"changes to checks are blocked", watched(journal.Watch{Files: []journal.Watched{{Path: "t", Test: true, Removed: true}}}, journal.GateFilesBlock),
			final(want(journal.PolicyBlocked, journal.ReasonGateFiles, "t")),
		},
		{
			"tests were changed, and nothing was tried",
			watched(journal.Watch{GateNotRun: true, Files: []journal.Watched{{Path: "new", Test: true, Added: true}, {Path: "t", Test: true}}}, ""),
			final(want(journal.Succeeded, journal.ReasonChecks, "new, t")),
		},
		{
			"tests were only added, and nothing was tried",
			watched(journal.Watch{GateNotRun: true, Files: []journal.Watched{{Path: "new", Test: true, Added: true}}}, ""), succeeded,
		},
		{"tests prove the change", retested(loop.EndDone, journal.Retest{Required: true, Proved: true}), succeeded},
		{"there is nothing to prove", retested(loop.EndDone, journal.Retest{Required: true, Exempt: true, Why: "w"}), succeeded},
		{"tests prove nothing, which is only reported", retested(loop.EndDone, journal.Retest{Why: "w"}), succeeded},
		{"tests prove nothing", retested(loop.EndDone, journal.Retest{Required: true, Why: "w"}), counted(again(journal.GateFailed, journal.ReasonUnproved, "w"))},
		{"tests cannot run", retested(loop.EndDone, journal.Retest{Required: true, Why: "w", Runs: []journal.Rerun{{Base: journal.TestRun{Outcome: journal.TestsNotStarted}}}}), counted(final(verdict(journal.GateFailed, journal.ReasonTestsNotRun, "w")))},
		{"tests prove nothing until the end", retested(loop.EndMaxIterations, journal.Retest{Tip: "t", Required: true, Why: "w"}), counted(again(journal.GateFailed, journal.ReasonUnproved, "w"))},
		{"tests of earlier commits prove nothing", retested(loop.EndMaxIterations, journal.Retest{Tip: "old", Required: true, Why: "w"}), counted(again(journal.Failed, journal.ReasonLoop, "d"))},
		{"a review accepts", reviewed(loop.EndDone, journal.Review{Accepted: true}), succeeded},
		{
			"a review accepts, and checks have changed",
			journal.Facts{End: loop.EndDone, Commits: 1, Review: &journal.Review{Accepted: true}, Watch: &journal.Watch{Removed: 1, Findings: []string{"1"}}},
			final(want(journal.Succeeded, journal.ReasonChecks, "1")),
		},
		{
			"a review finds something: the gravest is the reason, also where checks have changed",
			journal.Facts{End: loop.EndDone, Commits: 1, Watch: &journal.Watch{Removed: 1}, Review: &journal.Review{Findings: []journal.Finding{
				{Severity: journal.SeverityMinor, Text: "a"}, {Severity: journal.SeverityMajor, Text: "b"}, {Severity: journal.SeverityMajor, Text: "c"},
			}}},
			final(want(journal.Succeeded, journal.ReasonReview, "b")),
		},
		{"a review says that the issue is not solved", reviewed(loop.EndDone, journal.Review{Tested: true}), final(want(journal.Succeeded, journal.ReasonReview, "the issue is not fully solved"))},
		{"a review says that the tests test nothing", reviewed(loop.EndDone, journal.Review{Solved: true}), final(want(journal.Succeeded, journal.ReasonReview, "the tests do not test it"))},
		{"a review refuses and gives no reason", reviewed(loop.EndDone, journal.Review{Solved: true, Tested: true}), final(want(journal.Succeeded, journal.ReasonReview, "no reason was given"))},
		{"a review fails", reviewed(loop.EndDone, journal.Review{Failed: "it hung"}), final(want(journal.Succeeded, journal.ReasonUnreviewed, "it hung"))},
		{"a review refuses, and no iteration is left", reviewed(loop.EndMaxIterations, journal.Review{Tip: "t", Failed: "it hung"}), final(want(journal.Succeeded, journal.ReasonUnreviewed, "it hung"))},
		{"a review refused an earlier tip, and no iteration is left", reviewed(loop.EndMaxIterations, journal.Review{Tip: "old"}), counted(again(journal.Failed, journal.ReasonLoop, "d"))},
		{"a review accepted, and no iteration is left", reviewed(loop.EndMaxIterations, journal.Review{Tip: "t", Accepted: true}), counted(again(journal.Failed, journal.ReasonLoop, "d"))},
		{
			"a review refuses, and the gate fails since", journal.Facts{End: loop.EndDone, Commits: 1, Review: &journal.Review{}, Verify: &journal.Verification{Checks: red}},
			counted(again(journal.GateFailed, journal.ReasonVerify, "make: exit status 2")),
		},
		{"verified with nothing to check", journal.Facts{End: loop.EndDone, Verify: &journal.Verification{}}, succeeded},
		{
			"verification failed", journal.Facts{End: loop.EndDone, GateRan: true, Gate: green, Commits: 1, Verify: &journal.Verification{Checks: red, Base: "main"}},
			counted(again(journal.GateFailed, journal.ReasonVerify, "make: exit status 2")),
		},
		{
			"verification hung", journal.Facts{End: loop.EndDone, Verify: &journal.Verification{Checks: hung}},
			counted(again(journal.GateFailed, journal.ReasonVerify, "make: took longer than its time limit and was killed")),
		},
		{
			"setup of the verification failed", journal.Facts{End: loop.EndDone, Verify: &journal.Verification{Checks: red, Setup: true}},
			counted(again(journal.GateFailed, journal.ReasonVerify, "make: exit status 2")),
		},
		{
			"rebased, and the gate fails", journal.Facts{End: loop.EndDone, Verify: &journal.Verification{Checks: red, Base: "main", Rebase: true}},
			counted(again(journal.GateFailed, journal.ReasonRebasedGate, "main: make: exit status 2")),
		},
		{"a question needs no verification", journal.Facts{End: loop.EndNeedsInfo, Question: "q", Verify: &journal.Verification{Checks: red}}, final(want(journal.NeedsInfo, journal.ReasonAgentSaid, "q"))},

		// Policy, conflict and publication.
		{
			"policy", journal.Facts{End: loop.EndDone, Commits: 1, Policy: []string{"a", "b"}},
			final(want(journal.PolicyBlocked, journal.ReasonPolicy, "a; b")),
		},
		{
			"policy before a failed publication", journal.Facts{End: loop.EndDone, Policy: []string{"a"}, Publish: &journal.Fault{Text: "x"}},
			final(want(journal.PolicyBlocked, journal.ReasonPolicy, "a")),
		},
		{"conflict", journal.Facts{End: loop.EndDone, Commits: 1, Conflict: "CONFLICT a.txt"}, counted(again(journal.Failed, journal.ReasonConflict, "CONFLICT a.txt"))},
		{
			"conflict that no attempt solves", journal.Facts{End: loop.EndDone, Commits: 1, Conflict: "c", Hopeless: true},
			final(counted(want(journal.Failed, journal.ReasonConflict, "c"))),
		},
		{
			"publication failed", journal.Facts{End: loop.EndDone, Publish: &journal.Fault{Kind: journal.FaultOther, Text: "x"}, Tries: 1},
			again(journal.Failed, journal.ReasonPublish, "x"),
		},
		{
			"publication is given up", journal.Facts{End: loop.EndDone, Publish: &journal.Fault{Kind: journal.FaultOther, Text: "x"}, Tries: MaxTries},
			final(want(journal.Failed, journal.ReasonPublish, "x")),
		},
		{
			"worktree lost before publication", journal.Facts{End: loop.EndDone, Publish: &journal.Fault{Kind: journal.FaultLost, Text: "x"}},
			want(journal.Interrupted, journal.ReasonWorktreeLost, "x"),
		},
		{
			"a person has undone the merge", journal.Facts{End: loop.EndDone, Publish: &journal.Fault{Kind: journal.FaultUndone, Text: "x"}},
			final(want(journal.Failed, journal.ReasonUndone, "x")),
		},
		{
			"the draft of a failed gate cannot be shown", journal.Facts{End: loop.EndMaxIterations, EndDetail: "d", Commits: 1, GateRan: true, Gate: red, Publish: &journal.Fault{Text: "x"}},
			again(journal.GateFailed, journal.ReasonLoop, "d"),
		},
		{"published", journal.Facts{End: loop.EndDone, Done: true}, succeeded},
		{"published before a crash", journal.Facts{End: loop.EndDone, Done: true, Stop: journal.StopCrash, StoppedStage: journal.StagePublish}, succeeded},
		{"published draft", journal.Facts{End: loop.EndMaxIterations, Commits: 1, GateRan: true, Gate: red, Done: true}, counted(again(journal.GateFailed, journal.ReasonLoop, ""))},

		// The issue is gone.
		{"gone", journal.Facts{End: loop.EndDone, Gone: true}, superseded(tracker.Unfit{Code: tracker.UnfitGone})},
		{"gone after the publication", journal.Facts{End: loop.EndDone, Gone: true, Done: true}, succeeded},
		{"crash after crash", journal.Facts{Stop: journal.StopCrash, StoppedStage: journal.StageWork, Failures: MaxFailures - 1}, final(want(journal.Interrupted, journal.ReasonCrash, "work"))},
		{"stop after crashes", journal.Facts{Stop: journal.StopShutdown, StoppedStage: journal.StageWork, Failures: MaxFailures - 1}, want(journal.Interrupted, journal.ReasonShutdown, "")},
		{"gone after a crash", journal.Facts{Stop: journal.StopCrash, StoppedStage: journal.StageWork, Gone: true}, superseded(tracker.Unfit{Code: tracker.UnfitGone})},

		// Nothing could be opened.
		{
			"sandbox of every run", journal.Facts{Open: &journal.Fault{Kind: journal.FaultSandbox, Text: "x"}}, want(journal.EnvironmentUnavailable, journal.ReasonOpen, "x"),
		},
		{"agent of every run", journal.Facts{Open: &journal.Fault{Kind: journal.FaultAgent, Text: "x"}}, want(journal.AgentUnavailable, journal.ReasonOpen, "x")},
		{"base of every run", journal.Facts{Open: &journal.Fault{Kind: journal.FaultBase, Text: "x"}}, want(journal.EnvironmentUnavailable, journal.ReasonOpen, "x")},
		{"nothing answers", journal.Facts{Open: &journal.Fault{Kind: journal.FaultUnavailable, Text: "x"}}, want(journal.Interrupted, journal.ReasonOpen, "x")},
		{"this run's own", journal.Facts{Open: &journal.Fault{Kind: journal.FaultOther, Text: "x"}}, again(journal.Failed, journal.ReasonOpen, "x")},
		{"a fault of a later ralph", journal.Facts{Open: &journal.Fault{Kind: "?", Text: "x"}}, again(journal.Failed, journal.ReasonOpen, "x")},

		// Single commands.
		{"command", journal.Facts{Kind: journal.KindCommand, Exit: code(0)}, succeeded},
		{"command failed", journal.Facts{Kind: journal.KindCommand, Exit: code(3)}, counted(again(journal.Failed, journal.ReasonExit, "3"))},
		{"command without a status", journal.Facts{Kind: journal.KindCommand, EndDetail: "x"}, counted(again(journal.Failed, journal.ReasonExit, "x"))},
		{
			"command stopped", journal.Facts{Kind: journal.KindCommand, StoppedStage: journal.StageWork, Stop: journal.StopAsked}, want(journal.Interrupted, journal.ReasonAsked, ""),
		},
	}

	// These ends mean that the agent failed; the gate did not run, or did.
	for _, end := range []loop.End{loop.EndMaxIterations, loop.EndNoProgress, loop.EndTimeout} {
		cases = append(cases,
			decideCase{string(end), journal.Facts{End: end, EndDetail: "d", Commits: 1}, counted(again(journal.Failed, journal.ReasonLoop, "d"))},
			decideCase{string(end) + ", gate passed", journal.Facts{End: end, Commits: 1, GateRan: true, Gate: green}, counted(again(journal.Failed, journal.ReasonLoop, ""))},
			decideCase{string(end) + ", gate failed", journal.Facts{End: end, EndDetail: "d", Commits: 1, GateRan: true, Gate: red}, counted(again(journal.GateFailed, journal.ReasonLoop, "d"))},
			decideCase{string(end) + ", gate failed without commits", journal.Facts{End: end, GateRan: true, Gate: red}, counted(again(journal.Failed, journal.ReasonLoop, ""))},
		)
	}
	for _, end := range []loop.End{loop.EndAgent, loop.EndKilled, loop.EndOutput} {
		cases = append(cases, decideCase{string(end), journal.Facts{End: end, EndDetail: "d", GateRan: true, Gate: red, Commits: 1}, counted(again(journal.Failed, journal.ReasonLoop, "d"))})
	}
	// These ends say nothing about the agent's work: no attempt is used up.
	for _, end := range []loop.End{loop.EndSetup, loop.EndPrompt, loop.EndSandbox, loop.EndImport} {
		cases = append(cases, decideCase{string(end), journal.Facts{End: end, EndDetail: "d"}, again(journal.Failed, journal.ReasonLoop, "d")})
	}
	cases = append(cases, decideCase{
		"agent that did not start", journal.Facts{End: loop.EndAgent, Failure: &agents.Failure{Class: agents.NotStarted}}, again(journal.Failed, journal.ReasonLoop, ""),
	})

	// Every stop at every stage, whatever the result of the loop.
	unfit := tracker.Unfit{Code: tracker.UnfitLacks, Detail: "x"}
	for _, stage := range journal.Stages() {
		for _, end := range append(ends, "") {
			for stop, v := range map[journal.Stop]journal.Verdict{
				journal.StopShutdown:   want(journal.Interrupted, journal.ReasonShutdown, "by"),
				journal.StopAsked:      want(journal.Interrupted, journal.ReasonAsked, "by"),
				journal.StopClaimLost:  want(journal.Interrupted, journal.ReasonClaimLost, "by"),
				journal.StopMoved:      want(journal.Interrupted, journal.ReasonMoved, "by"),
				journal.StopSuperseded: superseded(unfit),
				journal.StopDisk:       final(want(journal.OverBudget, journal.ReasonDisk, "by")),
				journal.StopCrash:      want(journal.Interrupted, journal.ReasonCrash, string(stage)),
				"of a later ralph":     want(journal.Interrupted, journal.ReasonShutdown, "by"),
			} {
				cases = append(cases, decideCase{
					fmt.Sprintf("%s at %s, loop %s", stop, stage, end),
					journal.Facts{Stop: stop, StopBy: "by", Unfit: unfit, StoppedStage: stage, End: end, Open: &journal.Fault{}, Policy: []string{"p"}, Conflict: "c"}, v,
				})
			}
		}
	}
	// A stop that cut nothing changes nothing.
	for _, stop := range []journal.Stop{journal.StopShutdown, journal.StopAsked, journal.StopClaimLost, journal.StopMoved, journal.StopSuperseded, journal.StopDisk} {
		cases = append(cases, decideCase{"done in spite of " + string(stop), journal.Facts{End: loop.EndDone, Stop: stop}, succeeded})
	}

	// Attempts, waiting times and consecutive failures.
	failed := counted(want(journal.Failed, journal.ReasonLoop, ""))
	for _, c := range []struct {
		attempt, failures, tries int
		want                     journal.Verdict
	}{
		{1, 0, 0, after(failed, time.Minute)},
		{2, 1, 0, after(failed, 2*time.Minute)},
		{1, 2, 0, after(failed, 4*time.Minute)},
		{1, 3, 0, after(failed, 5*time.Minute)},
		{1, 8, 0, after(failed, 5*time.Minute)},
		{1, MaxFailures - 1, 0, final(failed)},
		{2, MaxFailures + 5, 0, final(failed)},
		{3, 2, 0, final(failed)},
		{4, 3, 0, final(failed)},
		{1, 0, MaxTries, final(failed)},
	} {
		cases = append(cases, decideCase{
			fmt.Sprintf("attempt %d after %d failures, %d tries", c.attempt, c.failures, c.tries),
			journal.Facts{End: loop.EndAgent, Attempt: c.attempt, Failures: c.failures, Tries: c.tries}, c.want,
		})
	}
	cases = append(cases,
		decideCase{
			"the last attempt is not used up by a setup", journal.Facts{End: loop.EndSetup, Attempt: 3}, again(journal.Failed, journal.ReasonLoop, ""),
		},
		decideCase{
			"setups that fail for ever", journal.Facts{End: loop.EndSetup, Attempt: 1, Failures: MaxFailures - 1}, final(want(journal.Failed, journal.ReasonLoop, "")),
		},
	)
	return cases
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	outcomes, reasons := map[journal.Outcome]bool{}, map[journal.ReasonCode]bool{}
	seenEnds, seenStops, seenFaults := map[loop.End]bool{}, map[journal.Stop]bool{}, map[journal.FaultKind]bool{}
	for _, c := range decideCases() {
		c.facts.CompletedAt, c.facts.Limits = now, limits
		c.facts.Attempt = max(1, c.facts.Attempt)
		got := Verdict(c.facts)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		outcomes[got.Outcome], reasons[got.Reason.Code] = true, true
		seenEnds[c.facts.End], seenStops[c.facts.Stop] = true, true
		for _, f := range []*journal.Fault{c.facts.Open, c.facts.Publish} {
			if f != nil {
				seenFaults[f.Kind] = true
			}
		}
	}
	for _, o := range journal.Outcomes() {
		if !outcomes[o] {
			t.Errorf("no case has outcome %s", o)
		}
	}
	for _, r := range []journal.ReasonCode{
		journal.ReasonAgentSaid, journal.ReasonUnchanged, journal.ReasonShutdown, journal.ReasonAsked, journal.ReasonClaimLost, journal.ReasonMoved, journal.ReasonCrash, journal.ReasonIssue,
		journal.ReasonDisk, journal.ReasonOpen, journal.ReasonLoop, journal.ReasonVerify, journal.ReasonRebasedGate, journal.ReasonPolicy,
		journal.ReasonConflict, journal.ReasonPublish, journal.ReasonWorktreeLost, journal.ReasonExit,
	} {
		if !reasons[r] {
			t.Errorf("no case has reason %s", r)
		}
	}
	for _, e := range ends {
		if !seenEnds[e] {
			t.Errorf("no case has end %s", e)
		}
	}
	for _, s := range stops {
		if !seenStops[s] {
			t.Errorf("no case has stop %s", s)
		}
	}
	for _, f := range faults {
		if !seenFaults[f] {
			t.Errorf("no case has fault %s", f)
		}
	}
}

// A negative Backoff counts as none; a huge number of failures must not overflow the doubling.
func TestDelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		l    journal.Limits
		n    int
		want time.Duration
	}{
		{journal.Limits{Backoff: time.Minute, BackoffMax: time.Hour}, 0, time.Minute},
		{journal.Limits{Backoff: 2 * time.Hour, BackoffMax: time.Hour}, 0, time.Hour},
		{journal.Limits{Backoff: time.Minute, BackoffMax: time.Hour}, 1 << 20, time.Hour},
		{journal.Limits{BackoffMax: time.Hour}, 1 << 20, 0},
	} {
		if got := delay(c.l, c.n); got != c.want {
			t.Errorf("%+v after %d: %s, want %s", c.l, c.n, got, c.want)
		}
	}
}

// A change that somebody else may have written sets only ralph's labels, and removes only those and the required ones.
func TestOwnChange(t *testing.T) {
	t.Parallel()
	l := tracker.StateLabels{NeedsHuman: "human", NeedsInfo: "info", InReview: "review", Claimed: "claimed"}
	c := tracker.Change{
		AddLabels: []string{"admin", "human", "", "claimed", "no-human"}, RemoveLabels: []string{"admin", "claimed", "no-human", ""}, Close: true, Reopen: true,
	}
	want := tracker.Change{AddLabels: []string{"human"}, RemoveLabels: []string{"claimed", "no-human"}}
	if diff := cmp.Diff(want, Own(l, c, []string{"no-human"}, false)); diff != "" {
		t.Error(diff)
	}
	if !Own(l, c, nil, true).Close {
		t.Error("a run that may merge closes nothing")
	}
}
