package loop

import (
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// End says why a loop ended; it is a closed set.
type End string

const (
	EndDone        End = "done"       // signal seen, gate passed
	EndNoChange    End = "no-change"  // the agent says nothing needs doing, and the gate passes
	EndNeedsInfo   End = "needs-info" // the agent asks a question
	EndMaxed       End = "max-iterations"
	EndNoProgress  End = "no-progress"
	EndBudget      End = "budget"
	EndTimeout     End = "run-timeout"
	EndUnavailable End = "agent-unavailable" // away, not logged in, or not to be started at all
	EndAgent       End = "agent-failed"      // a fatal agent error, or the same failure twice without a new commit
	EndSetup       End = "setup-failed"
	EndPrompt      End = "prompt-failed" // the prompt, or anything else Validate refuses
	EndSandbox     End = "sandbox-failed"
	EndHandBack    End = "hand-back-failed"
	EndOutput      End = "output-invalid"
	EndInterrupted End = "interrupted"
)

// How an iteration's process ended: the values of Iteration.Ending.
const (
	EndingExit        = "exit"              // by itself
	EndingGrace       = "grace"             // killed, for it hung after its completion signal; counts as finished
	EndingIdle        = "idle-timeout"      // killed, for it was silent
	EndingIteration   = "iteration-timeout" // killed, for it took too long
	EndingRun         = "run-timeout"       // killed, for the whole run took too long
	EndingInterrupted = "interrupted"       // asked to end, or killed, because the run was stopped
	EndingNotStarted  = "not-started"
	EndingSandbox     = "sandbox-failed" // nobody knows
)

// Iteration is what one agent process did.
type Iteration struct {
	Number   int             `json:"number"`
	Signal   string          `json:"signal,omitempty"` // the completion signal that counted; empty: none
	Ending   string          `json:"ending"`           // EndingExit and its like
	ExitCode int             `json:"exit_code"`
	Failure  *agents.Failure `json:"failure,omitempty"`
	Usage    agents.Usage    `json:"usage"`
	Commits  int             `json:"commits"` // new ones
	Duration time.Duration   `json:"duration_ns"`
	Session  string          `json:"session,omitempty"`
}

// Check is one gate or setup command's result.
type Check struct {
	Command  string        `json:"command"`
	ExitCode int           `json:"exit_code"` // for a death by signal 128 plus its number
	Duration time.Duration `json:"duration_ns"`
	TimedOut bool          `json:"timed_out,omitempty"`
	Tail     string        `json:"tail"` // the last 4 KiB of its output
}

// Passed reports success.
func (c Check) Passed() bool { return c.ExitCode == 0 && !c.TimedOut }

// Result is how the loop ended. The work is always on ralph's refs by then, unless End is EndHandBack.
type Result struct {
	End        End
	Err        error // what people need to know, one line; nil for EndDone and EndNoChange
	Iterations []Iteration
	Signal     string  // of the last iteration; empty: none
	Message    string  // the agent's last message, its last 64 KiB; prose, hostile
	Question   string  // EndNeedsInfo
	Reason     string  // EndNoChange
	Gate       []Check // of the last time the gate ran
	GateRan    bool
	Work       Work
	Usage      agents.Usage
	Failure    *agents.Failure // how the agent failed in the last iteration; always set for EndUnavailable and EndAgent
	Output     *OutputValue
	Warnings   []string
}

// GatePassed reports that the gate ran and every command passed (an empty gate passes).
func (r Result) GatePassed() bool { return r.GateRan && passed(r.Gate) }

func passed(checks []Check) bool {
	for _, c := range checks {
		if !c.Passed() {
			return false
		}
	}
	return true
}
