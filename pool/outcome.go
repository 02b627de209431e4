package pool

import (
	"github.com/ralph-pool/ralph/loop"
)

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
	// PolicyBlocked: the commits touch protected paths or carry a secret; nothing of them left the repository.
	PolicyBlocked Outcome = "policy-blocked"
	// OverBudget: tokens, cost or room on the disk are spent; the work is kept.
	OverBudget Outcome = "over-budget"
	// AgentUnavailable: rate limit, overload; a login or a program that is missing. No attempt is used.
	AgentUnavailable Outcome = "agent-unavailable"
	// Failed: anything else.
	Failed Outcome = "failed"
	// Interrupted: stopped by a signal, a shutdown, `ralph stop` or a lost claim. No attempt is used.
	Interrupted Outcome = "interrupted"
	// Superseded: the issue was closed, unlabelled, blocked or removed meanwhile. The work is kept, nothing is published.
	Superseded Outcome = "superseded"
)

// usesAttempt reports whether the outcome counts towards Config.MaxAttempts.
func (o Outcome) usesAttempt() bool { return o == GateFailed || o == Failed }

// outcomeOf translates why the loop ended.
func outcomeOf(r loop.Result) Outcome {
	switch r.End {
	case loop.EndDone:
		return Succeeded
	case loop.EndNoChange:
		return NoChange
	case loop.EndNeedsInfo:
		return NeedsInfo
	case loop.EndBudget:
		return OverBudget
	case loop.EndUnavailable:
		return AgentUnavailable
	case loop.EndInterrupted:
		return Interrupted
	case loop.EndMaxed, loop.EndNoProgress, loop.EndTimeout:
		if r.Work.Commits > 0 && r.GateRan && !r.GatePassed() {
			return GateFailed
		}
	}
	return Failed
}
