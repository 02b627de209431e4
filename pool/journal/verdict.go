package journal

import (
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Verdict is the consequence of a run for its issue. Package pool/internal/decide derives it from Facts.
type Verdict struct {
	Outcome Outcome   `json:"outcome,omitempty"`
	Reason  Reason    `json:"reason,omitzero"`
	Final   bool      `json:"final"`             // a person has to act next
	Counted bool      `json:"counted"`           // the run used up an attempt
	RetryAt time.Time `json:"retry_at,omitzero"` // earliest time of the next run
}

// Unattended reports whether the run is a success that can be merged without a person's review.
func (v Verdict) Unattended() bool {
	return v.Outcome == Succeeded && v.Reason.Code != ReasonChecks && v.Reason.Code != ReasonEdited && !v.Draft()
}

// Draft reports whether a request only shows the commits, because the gate does not pass or no review has accepted them.
func (v Verdict) Draft() bool {
	return v.Outcome != Succeeded || v.Reason.Code == ReasonReview || v.Reason.Code == ReasonUnreviewed
}

// Merges reports whether a run with this verdict moves the base branch: no review by a person is needed, or it has
// happened.
func (r Run) Merges(v Verdict) bool {
	looked := r.Settings.Attended || r.Kind != KindIssue
	return r.Settings.Publish == PublishMerge && (v.Unattended() || v.Outcome == Succeeded && looked)
}

// Merged reports whether the run has moved the base branch.
func (r Record) Merged() bool { return r.Published != "" && r.Settings.Publish == PublishMerge }

// Outcome is how a run ended. It is a closed set.
type Outcome string

const (
	// Succeeded means that there are commits, the gate passed and they are published.
	Succeeded Outcome = "succeeded"
	// NoChange means that the agent says nothing needs doing, the gate passes and there are no commits.
	NoChange Outcome = "no-change"
	// NeedsInfo means that the agent asked a question.
	NeedsInfo Outcome = "needs-info"
	// GateFailed means that there are commits and the gate does not pass within the limits.
	GateFailed Outcome = "gate-failed"
	// PolicyBlocked means that the commits touch protected paths or contain a secret, or that their merge would run a
	// filter of the user's. None of them left the repository.
	PolicyBlocked Outcome = "policy-blocked"
	// OverBudget means that the budget of tokens, cost or disk space is used up. The work is kept. With ReasonCap the issue
	// is worked again once the cap allows it.
	OverBudget Outcome = "over-budget"
	// AgentUnavailable means a rate limit, an overload, or a missing login or program. It uses no attempt.
	AgentUnavailable Outcome = "agent-unavailable"
	// EnvironmentUnavailable means that no sandbox could be opened, that setup or gate cannot run on the base, or that the
	// machine lacks resources for a run or an import. It uses no attempt.
	EnvironmentUnavailable Outcome = "environment-unavailable"
	// Failed means any other failure.
	Failed Outcome = "failed"
	// Interrupted means that a signal, a shutdown, a person or a lost claim stopped the run. It uses no attempt.
	Interrupted Outcome = "interrupted"
	// Superseded means that the issue was closed, unlabelled, blocked or removed meanwhile. The work is kept and not
	// published.
	Superseded Outcome = "superseded"
)

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{
		Succeeded, NoChange, NeedsInfo, GateFailed, PolicyBlocked, OverBudget, AgentUnavailable, EnvironmentUnavailable, Failed,
		Interrupted, Superseded,
	}
}

// Reason is the reason for a run's outcome. Package pool/report formats it for people.
type Reason struct {
	Code   ReasonCode    `json:"code"`
	Detail string        `json:"detail,omitempty"` // data for the code; may be hostile
	Unfit  tracker.Unfit `json:"unfit,omitzero"`   // for ReasonIssue
}

// ReasonCode is a kind of reason. The set is open.
type ReasonCode string

const (
	ReasonAgentSaid    ReasonCode = "agent-said"     // Detail: the agent's question, or why nothing needs to be done
	ReasonUnchanged    ReasonCode = "unchanged"      // the commits change no file
	ReasonShutdown     ReasonCode = "shutdown"       // ralph was stopped
	ReasonAsked        ReasonCode = "asked-to-stop"  // a person stopped the run
	ReasonClaimLost    ReasonCode = "claim-lost"     // another ralph holds the claim
	ReasonMoved        ReasonCode = "branch-moved"   // Detail: the actual and the expected commit of the run's branch on the remote
	ReasonCrash        ReasonCode = "crash"          // Detail: the stage at which ralph died
	ReasonIssue        ReasonCode = "issue-changed"  // Unfit: the issue's present state
	ReasonDisk         ReasonCode = "disk-full"      // Detail: the amount of data that the run wrote
	ReasonOpen         ReasonCode = "not-started"    // Detail: why worktree or sandbox could not be made, or why the gate could not run on the base
	ReasonLoop         ReasonCode = "loop-ended"     // Detail: why the loop ended
	ReasonMachine      ReasonCode = "machine"        // Detail: the resource that an import lacked, or how the engine was away
	ReasonCap          ReasonCode = "cap-spent"      // Detail: the cap of the project that ended the run
	ReasonVerify       ReasonCode = "verify-failed"  // Detail: the check that failed on the clean checkout
	ReasonRebasedGate  ReasonCode = "rebased-gate"   // Detail: the check that failed after the rebase
	ReasonCanary       ReasonCode = "gate-disabled"  // Detail: the path of a canary that the gate ignored
	ReasonBaseChecks   ReasonCode = "base-checks"    // Detail: the check that failed with the files of the base
	ReasonGateFiles    ReasonCode = "gate-files"     // Detail: changed files that the checks depend on
	ReasonChecks       ReasonCode = "checks-changed" // a success whose checks have changed; Detail: the changes
	ReasonEdited       ReasonCode = "issue-edited"   // a success, but the issue has changed since the run began
	ReasonUnproved     ReasonCode = "unproved"       // Detail: why the tests of the change do not prove its effect
	ReasonTestsNotRun  ReasonCode = "tests-not-run"  // Detail: why the tests of the change could not run
	ReasonReview       ReasonCode = "review-refused" // a success that its review did not accept; Detail: why
	ReasonUnreviewed   ReasonCode = "not-reviewed"   // a success without a required review; Detail: why
	ReasonPolicy       ReasonCode = "policy"         // Detail: the violation of the policy
	ReasonConflict     ReasonCode = "conflict"       // Detail: git's message
	ReasonPublish      ReasonCode = "publish-failed" // Detail: why
	ReasonUndone       ReasonCode = "merge-undone"   // Detail: the commit of a person that undoes the merge
	ReasonWorktreeLost ReasonCode = "worktree-lost"  // ralph died before it published, and the worktree is gone
	ReasonExit         ReasonCode = "exit-status"    // Detail: the command's exit status
)

// Unavailable reports whether the cause affects every run, so that the next sweep tries again.
func (o Outcome) Unavailable() bool { return o == AgentUnavailable || o == EnvironmentUnavailable }

// Blameless reports whether the cause of the end is not in the issue: the issue is worked again as if this run had not
// happened.
func (v Verdict) Blameless() bool {
	return v.Outcome == Interrupted || v.Outcome.Unavailable() || v.Reason.Code == ReasonCap
}

// UsesAttempt reports whether the outcome is a failed attempt of the agent.
func (o Outcome) UsesAttempt() bool { return o == GateFailed || o == Failed }

// byPerson reports whether a person has ended the run, and not the run's own work.
func (v Verdict) byPerson() bool {
	switch v.Reason.Unfit.Code {
	case tracker.UnfitClosed, tracker.UnfitLacks, tracker.UnfitHandedOver:
		return v.Outcome == Superseded
	}
	return v.Reason.Code == ReasonAsked
}
