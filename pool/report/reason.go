package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/pool/journal"
)

// reasons returns the sentence for each reason code.
func reasons() map[journal.ReasonCode]string {
	return map[journal.ReasonCode]string{
		journal.ReasonUnchanged: "the commits change no file",
		journal.ReasonShutdown:  "ralph was stopped",
		journal.ReasonAsked:     "stopped by a person",
		journal.ReasonClaimLost: "the claim was lost: it expired, or another ralph took it",
		journal.ReasonMoved:     "somebody else moved the branch: {detail}",
		journal.ReasonCrash: "the run was cut off at stage {detail}, " +
			"before its outcome was recorded", // ralph died, or could not write its journal
		journal.ReasonVerify:      "the gate does not pass on a clean checkout of the commits: {detail}",
		journal.ReasonRebasedGate: "the gate does not pass after the rebase onto {detail}",
		journal.ReasonCanary: "the gate is disabled: it passes with a failing test " +
			"added as {detail}, but fails with it on the base",
		journal.ReasonBaseChecks:   "the gate does not pass with the tests, configuration and scripts of the base: {detail}",
		journal.ReasonGateFiles:    "the commits change what the checks depend on: {detail}",
		journal.ReasonChecks:       "the checks themselves have changed: {detail}",
		journal.ReasonEdited:       "the issue has changed since the run began",
		journal.ReasonUnproved:     "no test shows what the commits do: {detail}",
		journal.ReasonTestsNotRun:  "the tests of the change could not be run: {detail}",
		journal.ReasonReview:       "the reviewer did not accept the commits: {detail}",
		journal.ReasonUnreviewed:   "the commits were not reviewed: {detail}",
		journal.ReasonPublish:      "publish: {detail}",
		journal.ReasonUndone:       "the merge is undone: {detail}",
		journal.ReasonWorktreeLost: "the run was cut off before it had published, and its worktree is gone; the commits are on the branch",
		journal.ReasonExit:         "the command ended with status {detail}",
	}
}

// Reason formats a reason as one line; "" for the zero Reason. The detail may be hostile and is not neutralized.
func Reason(r journal.Reason) string {
	switch r.Code {
	case "":
		return ""
	case journal.ReasonIssue:
		return r.Unfit.Sentence()
	}
	return strings.ReplaceAll(cmp.Or(reasons()[r.Code], "{detail}"), "{detail}", r.Detail)
}

// Unavailable names the agents that are unavailable.
func Unavailable(list []agents.Choice) string {
	var names []string
	for _, c := range list {
		names = append(names, c.String())
	}
	if len(names) == 1 {
		return "agent " + names[0] + " is unavailable"
	}
	return "agents " + strings.Join(names, ", ") + " are unavailable"
}

// skips returns the phrase for each skip code.
func skips() map[journal.SkipCode]string {
	return map[journal.SkipCode]string{
		journal.SkipReview:     "in review (label {detail})",
		journal.SkipUnlisted:   "not listed",
		journal.SkipClaimed:    "claimed by run {run} on {host}",
		journal.SkipBadClaim:   "its claim {detail}",
		journal.SkipUnreported: "run {run} has ended, but is not reported yet",
		journal.SkipHuman:      "needs a human (label {detail})",
		journal.SkipAnswer:     "waits for an answer (label {detail}): edit the issue or remove the label",
		journal.SkipLabels:     "{outcome} by run {run}, but its labels could not be changed: remove label {detail} yourself",
		journal.SkipDone:       "already {outcome} by run {run} on {host}",
		journal.SkipHalted:     "a person stopped run {run} on {host}: edit the issue to work it again",
		journal.SkipRecovered:  "finished from an earlier run that died",
		journal.SkipGone:       "gone from the backlog",
		journal.SkipEdited:     "its text has changed since it was approved; read it and add the label {detail} again",
		journal.SkipOverlap:    "waits for the run of {for}: both are likely to change {detail}",
		journal.SkipUnmerged:   "waits until {for} is merged ({where}): both change {detail}",
		journal.SkipOpen:       "waits for a merge: {detail} requests or branches are open or expected",
		journal.SkipBusy:       "waits for runs of issues with the label {detail}",
		journal.SkipStopped:    "the sweep was stopped",
		journal.SkipAsked:      "a person stopped it before its run began; the next sweep works it if it still qualifies",
	}
}

// Skip says in one line why the issue is not worked, and what changes that apart from naming the issue. The detail may be
// hostile and is not neutralized.
func Skip(s journal.Skip) string {
	switch s.Code {
	case journal.SkipUnfit:
		return s.Unfit.String()
	case journal.SkipRetry:
		return fmt.Sprintf("waits until %s: the last run ended %s (%s used)",
			s.Until.Local().Format(time.DateTime+" MST"), s.Outcome, plural.Of(s.Attempt, "attempt"))
	}
	values := strings.NewReplacer(
		"{detail}", s.Detail, "{run}", s.Run, "{host}", s.Host, "{outcome}", string(s.Outcome), "{for}", s.WaitsFor, "{where}", s.Where)
	return values.Replace(cmp.Or(skips()[s.Code], "{detail}"))
}
