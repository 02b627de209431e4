package journal

import (
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Verdict is what a run means for its issue. Package pool/decide makes it from Facts.
type Verdict struct {
	Outcome Outcome   `json:"outcome,omitempty"`
	Reason  Reason    `json:"reason,omitzero"`
	Final   bool      `json:"final"`             // a person is next
	Counted bool      `json:"counted"`           // used up an attempt
	RetryAt time.Time `json:"retry_at,omitzero"` // not before
}

// Unattended reports a success that needs nobody's look before it is merged.
func (v Verdict) Unattended() bool {
	return v.Outcome == Succeeded && v.Reason.Code != ReasonChecks && v.Reason.Code != ReasonEdited && !v.Draft()
}

// Draft reports that a request only shows the commits: the gate does not pass, or no review has accepted them.
func (v Verdict) Draft() bool {
	return v.Outcome != Succeeded || v.Reason.Code == ReasonReview || v.Reason.Code == ReasonUnreviewed
}

// Merges reports that a run which ends like this moves the base branch: nobody has to look first, or a person has.
func (r Run) Merges(v Verdict) bool {
	looked := r.Settings.Attended || r.Kind != KindIssue
	return r.Settings.Publish == PublishMerge && (v.Unattended() || v.Outcome == Succeeded && looked)
}

// Merged reports that the run has moved the base branch.
func (r Record) Merged() bool { return r.Published != "" && r.Settings.Publish == PublishMerge }

// Outcome is how a run ended. It is a closed set.
type Outcome string

const (
	// Succeeded: commits exist, the gate passed, they are published.
	Succeeded Outcome = "succeeded"
	// NoChange: the agent says nothing needs doing, the gate passes, there are no commits.
	NoChange Outcome = "no-change"
	// NeedsInfo: the agent asked a question.
	NeedsInfo Outcome = "needs-info"
	// GateFailed: commits exist, the gate does not pass within the limits.
	GateFailed Outcome = "gate-failed"
	// PolicyBlocked: the commits touch protected paths or carry a secret, or their merge would run a filter of the user's;
	// nothing of them left the repository.
	PolicyBlocked Outcome = "policy-blocked"
	// OverBudget: tokens, cost or disk space are spent; the work is kept. For ReasonCap the issue is worked again when the cap
	// has room.
	OverBudget Outcome = "over-budget"
	// AgentUnavailable: rate limit, overload; a missing login or program. No attempt is used.
	AgentUnavailable Outcome = "agent-unavailable"
	// EnvironmentUnavailable: no sandbox has opened yet, setup or gate cannot run on the base, or the machine lacks what a run
	// begins with, or what an import takes. No attempt is used.
	EnvironmentUnavailable Outcome = "environment-unavailable"
	// Failed: anything else.
	Failed Outcome = "failed"
	// Interrupted: stopped by a signal, a shutdown, a person or a lost claim. No attempt is used.
	Interrupted Outcome = "interrupted"
	// Superseded: the issue was closed, unlabelled, blocked or removed meanwhile. The work is kept, nothing is published.
	Superseded Outcome = "superseded"
)

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{
		Succeeded, NoChange, NeedsInfo, GateFailed, PolicyBlocked, OverBudget, AgentUnavailable, EnvironmentUnavailable, Failed,
		Interrupted, Superseded,
	}
}

// Reason is why a run has its outcome. Package pool/report puts it into words.
type Reason struct {
	Code   ReasonCode    `json:"code"`
	Detail string        `json:"detail,omitempty"` // data that belongs to the code; may be hostile
	Unfit  tracker.Unfit `json:"unfit,omitzero"`   // for ReasonIssue
}

// ReasonCode is a kind of reason. The set is open.
type ReasonCode string

const (
	ReasonAgentSaid    ReasonCode = "agent-said"     // Detail: the agent's question, or why nothing needs doing
	ReasonUnchanged    ReasonCode = "unchanged"      // the commits change no file
	ReasonShutdown     ReasonCode = "shutdown"       // ralph was stopped
	ReasonAsked        ReasonCode = "asked-to-stop"  // a person stopped the run
	ReasonClaimLost    ReasonCode = "claim-lost"     // another ralph has the issue
	ReasonMoved        ReasonCode = "branch-moved"   // Detail: where the run's branch on the remote is, and was to be
	ReasonCrash        ReasonCode = "crash"          // Detail: the stage at which ralph died
	ReasonIssue        ReasonCode = "issue-changed"  // Unfit: what the issue is now
	ReasonDisk         ReasonCode = "disk-full"      // Detail: what the run wrote
	ReasonOpen         ReasonCode = "not-started"    // Detail: why worktree or sandbox could not be made, or the gate not run on the base
	ReasonLoop         ReasonCode = "loop-ended"     // Detail: why the loop ended
	ReasonMachine      ReasonCode = "machine"        // Detail: what it lacked when commits were imported, or how its engine was away
	ReasonCap          ReasonCode = "cap-spent"      // Detail: the cap of the project that ended the run
	ReasonVerify       ReasonCode = "verify-failed"  // Detail: the check that failed on the clean checkout
	ReasonRebasedGate  ReasonCode = "rebased-gate"   // Detail: the check that failed after the rebase
	ReasonCanary       ReasonCode = "gate-disabled"  // Detail: the path of a failing test that the gate passed over
	ReasonBaseChecks   ReasonCode = "base-checks"    // Detail: the check that failed with the files of the base
	ReasonGateFiles    ReasonCode = "gate-files"     // Detail: changed files that the checks depend on
	ReasonChecks       ReasonCode = "checks-changed" // a success whose checks have changed; Detail: in what
	ReasonEdited       ReasonCode = "issue-edited"   // a success, but the issue has changed since the run began
	ReasonUnproved     ReasonCode = "unproved"       // Detail: why the tests of the change do not show what it does
	ReasonReview       ReasonCode = "review-refused" // a success that its review did not accept; Detail: why
	ReasonUnreviewed   ReasonCode = "not-reviewed"   // a success without the review that it should have; Detail: why
	ReasonPolicy       ReasonCode = "policy"         // Detail: what the commits may not bring
	ReasonConflict     ReasonCode = "conflict"       // Detail: what git said
	ReasonPublish      ReasonCode = "publish-failed" // Detail: why
	ReasonWorktreeLost ReasonCode = "worktree-lost"  // ralph died before it published, and the worktree is gone
	ReasonExit         ReasonCode = "exit-status"    // Detail: the command's exit status
)

// Unavailable reports that the run met what every other run would meet: the next sweep tries again.
func (o Outcome) Unavailable() bool { return o == AgentUnavailable || o == EnvironmentUnavailable }

// Blameless reports an end whose cause is not in the issue: it is worked again as if this run had not been.
func (v Verdict) Blameless() bool {
	return v.Outcome == Interrupted || v.Outcome.Unavailable() || v.Reason.Code == ReasonCap
}

// UsesAttempt reports whether the outcome is a failed try of the agent's.
func (o Outcome) UsesAttempt() bool { return o == GateFailed || o == Failed }

// byPerson reports that a person has ended the run, and not the work on the issue.
func (v Verdict) byPerson() bool {
	switch v.Reason.Unfit.Code {
	case tracker.UnfitClosed, tracker.UnfitLacks, tracker.UnfitHandedOver:
		return v.Outcome == Superseded
	}
	return v.Reason.Code == ReasonAsked
}
