// Package decide derives a run's verdict from its facts. It has no side effects, and it alone sets outcomes. Package pool/run
// collects the facts.
package decide

import (
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

const (
	// MaxTries is how often a stage may fail for a transient reason, once in each sweep, before a person has to act.
	MaxTries = 3
	// MaxFailures is the number of consecutive failed runs, counted as attempts or not, that hands an issue to a person. It
	// includes runs in which ralph died, the machine could not import the commits, or the engine went away: the run may be the
	// cause.
	MaxFailures = 10
)

// Verdict derives outcome, reason and consequences from the facts.
func Verdict(f journal.Facts) journal.Verdict {
	v := outcome(f)
	v.Counted = v.Outcome.UsesAttempt() && countsAsAttempt(f)
	switch v.Outcome {
	case journal.Succeeded, journal.NoChange, journal.OverBudget, journal.NeedsInfo, journal.PolicyBlocked:
		v.Final = v.Reason.Code != journal.ReasonCap // a cap is no fault of the issue
	case journal.AgentUnavailable:
		v.RetryAt = f.AvailableAt
		if f.AvailableAt.IsZero() && f.Failure != nil {
			v.RetryAt = f.Failure.AvailableAt(f.CompletedAt)
		}
	case journal.Interrupted:
		v.Final = v.Reason.Code == journal.ReasonCrash && f.Failures+1 >= MaxFailures
	case journal.Failed, journal.GateFailed:
		hopeless := f.End == loop.EndDenied || f.End == loop.EndUnchanged || v.Reason.Code == journal.ReasonTestsNotRun ||
			v.Reason.Code == journal.ReasonConflict && f.Hopeless || v.Reason.Code == journal.ReasonUndone
		lastAttempt := v.Counted && f.Attempt >= f.Limits.MaxAttempts
		v.Final = hopeless || f.Tries >= MaxTries || lastAttempt || f.Failures+1 >= MaxFailures
		if !v.Final {
			v.RetryAt = f.CompletedAt.Add(delay(f.Limits, f.Failures))
		}
	}
	return v
}

func verdict(o journal.Outcome, code journal.ReasonCode, detail string) journal.Verdict {
	return journal.Verdict{Outcome: o, Reason: journal.Reason{Code: code, Detail: detail}}
}

func superseded(why tracker.Unfit) journal.Verdict {
	return journal.Verdict{Outcome: journal.Superseded, Reason: journal.Reason{Code: journal.ReasonIssue, Unfit: why}}
}

// outcome examines the facts from the latest to the earliest. Work that was published stays published whatever happened later.
func outcome(f journal.Facts) journal.Verdict {
	switch {
	case f.Reported != "":
		return reportedVerdict(f)
	case f.Gone && !f.Done:
		return superseded(tracker.Unfit{Code: tracker.UnfitGone})
	case f.Done:
		return workVerdict(f)
	case f.Stop == journal.StopCrash:
		return verdict(journal.Interrupted, journal.ReasonCrash, string(f.StoppedStage))
	case f.StoppedStage != "":
		return stopVerdict(f)
	case f.Open != nil:
		return verdict(openFailureOutcome(f.Open.Kind), journal.ReasonOpen, f.Open.Text)
	case len(f.Policy) > 0:
		return verdict(journal.PolicyBlocked, journal.ReasonPolicy, strings.Join(f.Policy, "; "))
	case f.Conflict != "":
		return verdict(journal.Failed, journal.ReasonConflict, f.Conflict)
	}
	v := workVerdict(f)
	if f.Publish != nil && v.Outcome == journal.Succeeded {
		switch f.Publish.Kind {
		case journal.FaultLost:
			return verdict(journal.Interrupted, journal.ReasonWorktreeLost, f.Publish.Text)
		case journal.FaultUndone:
			return verdict(journal.Failed, journal.ReasonUndone, f.Publish.Text)
		}
		return verdict(journal.Failed, journal.ReasonPublish, f.Publish.Text)
	}
	return v
}

// reportedVerdict returns the outcome that was reported already, with its reason if the facts still have it.
func reportedVerdict(f journal.Facts) journal.Verdict {
	outcomeBefore := f.Reported
	f.Reported, f.Stop, f.StoppedStage, f.Publish = "", "", "", nil // facts that came after the report
	if v := outcome(f); v.Outcome == outcomeBefore {
		return v
	}
	return journal.Verdict{Outcome: outcomeBefore}
}

// openFailureOutcome returns the outcome of a run whose agent could not be started.
func openFailureOutcome(k journal.FaultKind) journal.Outcome {
	switch k {
	case journal.FaultAgent:
		return journal.AgentUnavailable
	case journal.FaultSandbox, journal.FaultBase:
		return journal.EnvironmentUnavailable
	case journal.FaultUnavailable:
		return journal.Interrupted
	}
	return journal.Failed
}

// stopVerdict returns the outcome of a run that was cut short.
func stopVerdict(f journal.Facts) journal.Verdict {
	switch f.Stop {
	case journal.StopSuperseded:
		return superseded(f.Unfit)
	case journal.StopDisk:
		return verdict(journal.OverBudget, journal.ReasonDisk, f.StopBy)
	case journal.StopAsked:
		return verdict(journal.Interrupted, journal.ReasonAsked, f.StopBy)
	case journal.StopClaimLost:
		return verdict(journal.Interrupted, journal.ReasonClaimLost, f.StopBy)
	case journal.StopMoved:
		return verdict(journal.Interrupted, journal.ReasonMoved, f.StopBy)
	}
	return verdict(journal.Interrupted, journal.ReasonShutdown, f.StopBy)
}

// workVerdict returns the outcome of the work of a run that was not cut short.
func workVerdict(f journal.Facts) journal.Verdict {
	if f.Kind == journal.KindCommand {
		if f.Exit != nil && *f.Exit == 0 {
			return journal.Verdict{Outcome: journal.Succeeded}
		}
		detail := f.EndDetail
		if f.Exit != nil {
			detail = fmt.Sprint(*f.Exit)
		}
		return verdict(journal.Failed, journal.ReasonExit, detail)
	}
	switch f.End {
	case loop.EndDone:
		return gateVerdict(f)
	case loop.EndNoChange:
		return verdict(journal.NoChange, journal.ReasonAgentSaid, f.NoChange)
	case loop.EndNeedsInfo:
		return verdict(journal.NeedsInfo, journal.ReasonAgentSaid, f.Question)
	case loop.EndBudget:
		if f.Capped {
			return verdict(journal.OverBudget, journal.ReasonCap, f.EndDetail)
		}
		return verdict(journal.OverBudget, journal.ReasonLoop, f.EndDetail)
	case loop.EndImport, loop.EndSandbox:
		if f.Starved && f.Failures+1 < MaxFailures { // until then assume that every other run would meet it, too
			return verdict(journal.EnvironmentUnavailable, journal.ReasonMachine, f.EndDetail)
		}
	case loop.EndUnavailable:
		return verdict(journal.AgentUnavailable, journal.ReasonLoop, f.EndDetail)
	case loop.EndUnchanged:
		return verdict(journal.GateFailed, journal.ReasonLoop, f.EndDetail)
	case loop.EndInterrupted:
		return verdict(journal.Interrupted, journal.ReasonShutdown, f.EndDetail)
	case loop.EndMaxIterations:
		if f.Optional && f.Failure == nil && (!f.GateRan || f.GatePassed()) {
			return gateVerdict(f) // one good iteration was asked for
		}
	}
	switch f.End {
	case loop.EndMaxIterations, loop.EndNoProgress, loop.EndTimeout:
		switch {
		case f.Commits > 0 && f.GateRan && !f.GatePassed():
			return verdict(journal.GateFailed, journal.ReasonLoop, f.EndDetail)
		case f.Commits > 0 && f.Verify != nil && gateVerdict(f).Outcome != journal.Succeeded:
			return gateVerdict(f)
		case f.Commits > 0 && f.Retest.Refused() && f.Retest.Tip == f.Tip:
			return gateVerdict(f)
		case f.Commits > 0 && f.Review.Refused() && f.Review.Tip == f.Tip:
			return gateVerdict(f) // only the review is missing
		}
	}
	return verdict(journal.Failed, journal.ReasonLoop, f.EndDetail)
}

// gateVerdict returns success, unless the gate failed on a clean checkout of the tip or cannot be trusted.
func gateVerdict(f journal.Facts) journal.Verdict {
	w := f.Watch
	switch {
	case f.Verify != nil && !f.Verify.Passed() && f.Verify.Rebase:
		return verdict(journal.GateFailed, journal.ReasonRebasedGate, f.Verify.Base+": "+failed(f.Verify))
	case f.Verify != nil && !f.Verify.Passed():
		return verdict(journal.GateFailed, journal.ReasonVerify, failed(f.Verify))
	case w.Disabled() != "":
		return verdict(journal.GateFailed, journal.ReasonCanary, w.Disabled())
	case f.Unchanged:
		return verdict(journal.NoChange, journal.ReasonUnchanged, "")
	case f.Files == journal.GateFilesBlock && w.Changed():
		return verdict(journal.PolicyBlocked, journal.ReasonGateFiles, changedChecks(w))
	case f.Files == journal.GateFilesRequire && w != nil && w.Base != nil && !w.Base.Passed():
		return verdict(journal.GateFailed, journal.ReasonBaseChecks, failed(w.Base))
	case f.Retest.Refused() && f.Retest.NotStarted():
		return verdict(journal.GateFailed, journal.ReasonTestsNotRun, shorten(f.Retest.Why))
	case f.Retest.Refused():
		return verdict(journal.GateFailed, journal.ReasonUnproved, shorten(f.Retest.Why))
	case f.Review.Refused() && f.Review.Failed != "":
		return verdict(journal.Succeeded, journal.ReasonUnreviewed, f.Review.Failed)
	case f.Review.Refused():
		return verdict(journal.Succeeded, journal.ReasonReview, refused(f.Review))
	case w.Changed():
		return verdict(journal.Succeeded, journal.ReasonChecks, changedChecks(w))
	case f.Outdated:
		return verdict(journal.Succeeded, journal.ReasonEdited, "")
	}
	return journal.Verdict{Outcome: journal.Succeeded}
}

// failed describes the first failed check.
func failed(v *journal.Verification) string {
	for _, c := range v.Checks {
		if !c.Passed() {
			return c.Command + ": " + c.Ending()
		}
	}
	return ""
}

// refused returns a review's gravest finding.
func refused(r *journal.Review) string {
	switch {
	case len(r.Findings) > 0:
		return shorten(r.BySeverity()[0].Text)
	case !r.Solved:
		return "the issue is not fully solved"
	case !r.Tested:
		return "the tests do not test it"
	}
	return "no reason was given"
}

// shorten shortens a text for a reason.
func shorten(text string) string {
	const most = 300
	if text = strings.Join(strings.Fields(text), " "); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// changedChecks names the first changed files of the checks.
func changedChecks(w *journal.Watch) string {
	const most = 3
	list := w.Findings
	for _, f := range w.Files {
		if len(w.Findings) == 0 || !f.Test {
			list = append(list[:len(list):len(list)], f.Path)
		}
	}
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// countsAsAttempt reports whether a failure concerns the agent's work: only such failures use up an attempt.
func countsAsAttempt(f journal.Facts) bool {
	if f.Open != nil || f.Publish != nil {
		return false
	}
	switch f.End {
	case loop.EndSetup, loop.EndPrompt, loop.EndSandbox, loop.EndImport:
		return false
	}
	return f.Failure == nil || f.Failure.Class != agents.NotStarted
}

// delay returns the time to wait after a failure that follows n others.
func delay(l journal.Limits, n int) time.Duration {
	d := l.Backoff
	for range n {
		if d *= 2; d >= l.BackoffMax {
			return l.BackoffMax
		}
	}
	return min(d, l.BackoffMax)
}
