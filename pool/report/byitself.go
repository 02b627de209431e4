package report

import (
	"fmt"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// ByItself says what a sweep does next with an issue after its run, without a person; "" if that depends on a person.
func ByItself(r journal.Record) string {
	v := r.Verdict
	switch v.Reason.Code {
	case journal.ReasonAsked, journal.ReasonClaimLost:
		return ""
	case journal.ReasonCap:
		return "a sweep continues when the cap has room again"
	}
	switch {
	case v.Final || !v.Outcome.UsesAttempt() && !v.Blameless():
		return ""
	case cannotRun(r):
		return "the next sweep tries again"
	case v.Blameless():
		return "the next sweep continues"
	case v.RetryAt.IsZero():
		return "the next sweep tries again"
	}
	return fmt.Sprintf("the first sweep that begins after %s tries it again", stamp(v.RetryAt))
}

// nextByItself returns the next step if ralph waits for nobody.
func nextByItself(r journal.Record) string {
	v := r.Verdict
	switch {
	case v.Outcome == journal.Superseded:
		return "nothing" + revive(v.Reason.Unfit) + "."
	case v.Reason.Code == journal.ReasonCap:
		return "nothing; " + ByItself(r) + "."
	case cannotRun(r):
		return correctChecks
	case v.RetryAt.IsZero() || v.RetryAt.Before(r.Started): // no later time is known
		return "nothing; the next sweep continues."
	}
	return fmt.Sprintf("nothing; the first sweep that begins after %s tries it again.", stamp(v.RetryAt))
}

// revive says how an issue that was taken from ralph can return to it.
func revive(why tracker.Unfit) string {
	how := "available again"
	switch label := tracker.QuoteLine(why.Detail, line); why.Code {
	case tracker.UnfitGone:
		return ""
	case tracker.UnfitClosed:
		how = "reopened"
	case tracker.UnfitLacks:
		how = "given the label " + label
	case tracker.UnfitConfidential:
		how = "public, or the project private"
	case tracker.UnfitExcluded, tracker.UnfitHandedOver:
		how = "without the label " + label
	}
	return "; ralph continues when the issue is " + how
}
