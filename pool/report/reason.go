package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Reason puts a reason into words, in one line; empty for the zero Reason. The detail may be hostile and is not
// neutralized here.
func Reason(r journal.Reason) string {
	switch r.Code {
	case "":
		return ""
	case journal.ReasonUnchanged:
		return "the commits change no file"
	case journal.ReasonShutdown:
		return "ralph was stopped"
	case journal.ReasonAsked:
		return "stopped by a person"
	case journal.ReasonClaimLost:
		return "the claim was lost to another ralph"
	case journal.ReasonMoved:
		return "somebody else moved the branch: " + r.Detail
	case journal.ReasonCrash:
		return "the run was cut off at stage " + r.Detail + ", and its end not recorded" // ralph died, or could not write its journal
	case journal.ReasonIssue:
		return r.Unfit.Sentence()
	case journal.ReasonVerify:
		return "the gate does not pass on a clean checkout of the commits: " + r.Detail
	case journal.ReasonRebasedGate:
		return "the gate does not pass after the rebase onto " + r.Detail
	case journal.ReasonCanary:
		return "the gate is disabled: it passes over a failing test, planted as " + r.Detail + ", over which it fails on the base"
	case journal.ReasonBaseChecks:
		return "the gate does not pass with the tests, configuration and scripts of the base: " + r.Detail
	case journal.ReasonGateFiles:
		return "the commits change what the checks depend on: " + r.Detail
	case journal.ReasonChecks:
		return "the checks themselves have changed: " + r.Detail
	case journal.ReasonEdited:
		return "the issue has changed since the run began"
	case journal.ReasonUnproved:
		return "no test shows what the commits do: " + r.Detail
	case journal.ReasonReview:
		return "the reviewer did not accept the commits: " + r.Detail
	case journal.ReasonUnreviewed:
		return "the commits were not reviewed: " + r.Detail
	case journal.ReasonPublish:
		return "publish: " + r.Detail
	case journal.ReasonWorktreeLost:
		return "the run was cut off before it had published, and its worktree is gone; the commits are on the branch"
	case journal.ReasonExit:
		return "the command ended with status " + r.Detail
	}
	return r.Detail
}

// Unavailable says which agents are unavailable.
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

// Skip says in one line why the issue is not worked, and what changes that besides naming the issue. The detail may be hostile and is not
// neutralized here.
func Skip(s journal.Skip) string {
	switch s.Code {
	case journal.SkipUnfit:
		return s.Unfit.String()
	case journal.SkipReview:
		return fmt.Sprintf("is in review (label %s)", s.Detail)
	case journal.SkipUnlisted:
		return "not listed"
	case journal.SkipClaimed:
		return fmt.Sprintf("claimed by run %s on %s", s.Run, s.Host)
	case journal.SkipBadClaim:
		return "its claim " + s.Detail
	case journal.SkipUnreported:
		return fmt.Sprintf("run %s has ended, and is still to be reported", s.Run)
	case journal.SkipHuman:
		return fmt.Sprintf("needs a human (label %s)", s.Detail)
	case journal.SkipAnswer:
		return fmt.Sprintf("waits for an answer (label %s): edit the issue or remove the label", s.Detail)
	case journal.SkipLabels:
		return fmt.Sprintf("%s by run %s, but its labels could not be changed: remove label %s yourself", s.Outcome, s.Run, s.Detail)
	case journal.SkipRetry:
		return fmt.Sprintf("waits until %s: the last run ended %s (%s used)", s.Until.Local().Format(time.DateTime+" MST"), s.Outcome, plural.Of(s.Attempt, "attempt"))
	case journal.SkipDone:
		return fmt.Sprintf("already %s by run %s on %s", s.Outcome, s.Run, s.Host)
	case journal.SkipHalted:
		return fmt.Sprintf("a person has stopped run %s on %s: edit the issue to have it worked again", s.Run, s.Host)
	case journal.SkipRecovered:
		return "was finished from an earlier run that had died"
	case journal.SkipGone:
		return "is gone from the backlog"
	case journal.SkipEdited:
		return fmt.Sprintf("its text is not what was approved; read it and put the label %s on again", s.Detail)
	case journal.SkipCap:
		return s.Detail
	case journal.SkipOverlap:
		return fmt.Sprintf("waits for the run of %s: both are likely to change %s", s.For, s.Detail)
	case journal.SkipUnmerged:
		return fmt.Sprintf("waits until %s is merged (%s): both change %s", s.For, s.Where, s.Detail)
	case journal.SkipOpen:
		return fmt.Sprintf("waits for a merge: %s requests or branches are open, or on the way", s.Detail)
	case journal.SkipBusy:
		return "waits for runs of issues with the label " + s.Detail
	case journal.SkipStopped:
		return "the sweep was stopped"
	}
	return s.Detail
}
