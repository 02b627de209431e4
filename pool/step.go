package pool

// Step is a point on the way of one issue. Each is written to the journal before it is taken, and each can be taken
// again after a crash.
type Step string

const (
	StepClaim    Step = "claim"
	StepWorktree Step = "worktree"
	StepSandbox  Step = "sandbox"
	StepLoop     Step = "loop"
	StepPublish  Step = "publish" // from here on the verdict stands
	StepReport   Step = "report"
	StepLabel    Step = "label"
	StepRelease  Step = "release"
	StepEnd      Step = "end"
)

// Steps lists every step in order.
func Steps() []Step {
	return []Step{
		StepClaim, StepWorktree, StepSandbox, StepLoop, StepPublish, StepReport, StepLabel, StepRelease, StepEnd,
	}
}
