package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// End says why a loop ended; it is a closed set.
type End string

const (
	EndDone        End = "done"              // the agent gave the signal, and the gate passed
	EndNoChange    End = "no-change"         // the agent says that nothing needs doing, and the gate passed
	EndNeedsInfo   End = "needs-info"        // the agent asks a question
	EndMaxed       End = "max-iterations"    // see Limits
	EndNoProgress  End = "no-progress"       // see Limits
	EndUnchanged   End = "gate-unchanged"    // the gate fails just as on the base, whatever the agent commits; see Config.Unchanged
	EndBudget      End = "budget"            // see Limits
	EndTimeout     End = "run-timeout"       // see Limits
	EndDenied      End = "permission-denied" // the agent may not do what it has to; see Denied
	EndUnavailable End = "agent-unavailable" // overloaded, not logged in, or not to be started at all; see Failure
	EndAgent       End = "agent-failed"      // a fatal failure, or the same one twice without a new commit; see Failure
	EndSetup       End = "setup-failed"      // see Setup
	EndPrompt      End = "prompt-failed"     // the prompt, or anything else that is wrong with the Config; see Err
	EndSandbox     End = "sandbox-failed"    // see Err
	EndKilled      End = "sandbox-killed"    // the agent, or a check, has killed what runs commands in the sandbox; see Err
	EndImport      End = "import-failed"     // see Err
	EndOutput      End = "output-invalid"    // see Err
	EndInterrupted End = "interrupted"       // see Err
)

// Missing says why the last iteration did not finish the run.
type Missing string

const (
	MissingSignal  Missing = "signal"           // the agent did not say that it is done
	MissingCommits Missing = "commits"          // it did, without a commit
	MissingAccept  Missing = "accept"           // Config.Accept refused the work; see Refusal
	MissingVerify  Missing = "verify"           // Config.Verify refused the work; see Refusal
	MissingGate    Missing = "gate"             // a gate command failed; see Gate
	MissingShare   Missing = "iteration-budget" // the agent was ended when the budget of one iteration, or its own, was spent
)

// Ending says how an iteration's process ended.
type Ending string

const (
	EndingExit        Ending = "exit"              // by itself
	EndingGrace       Ending = "grace"             // killed: it hung after its completion signal; counts as finished
	EndingIdle        Ending = "idle-timeout"      // killed: it was silent
	EndingIteration   Ending = "iteration-timeout" // killed: it took too long
	EndingBudget      Ending = "budget"            // killed: the budget was spent
	EndingShare       Ending = "iteration-budget"  // killed: the budget of one iteration was spent
	EndingAgent       Ending = "agent-budget"      // killed: the agent's own budget was spent
	EndingRun         Ending = "run-timeout"       // killed: the whole run took too long
	EndingInterrupted Ending = "interrupted"       // asked to end, or killed, because the run was stopped
	EndingNotStarted  Ending = "not-started"
	EndingSandbox     Ending = "sandbox-failed" // unknown
)

// Iteration is what one agent process did.
type Iteration struct {
	Number   int             `json:"number"`
	Agent    string          `json:"agent,omitempty"` // which agent it was
	Model    string          `json:"model,omitempty"` // empty: the agent's own
	Ended    time.Time       `json:"ended,omitzero"`
	Signal   string          `json:"signal,omitempty"` // the completion signal that counted; empty: none
	Ending   Ending          `json:"ending"`
	ExitCode int             `json:"exit_code"`
	Failure  *agents.Failure `json:"failure,omitempty"`
	Denied   []agents.Denial `json:"denied,omitempty"` // tool calls that the agent's permission system refused
	Usage    agents.Usage    `json:"usage"`
	Unseen   agents.Usage    `json:"unseen,omitzero"` // the part of Usage that only the agent reports, although its service's answers passed ralph
	Free     bool            `json:"free,omitempty"`  // nothing was used: ralph saw its service refuse all requests, or not be reached
	Commits  int             `json:"commits"`         // new ones
	Duration time.Duration   `json:"duration_ns"`
	Session  string          `json:"session,omitempty"`
	Resumed  bool            `json:"resumed,omitempty"` // it went on in the session of the iteration before
	Prompt   string          `json:"prompt,omitempty"`  // SHA-256 of what the agent was told
	Stderr   string          `json:"-"`                 // of an agent that failed: the last 50 lines of its standard error; hostile
}

// Choice is the agent and its model.
func (it Iteration) Choice() agents.Choice { return agents.Choice{Agent: it.Agent, Model: it.Model} }

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

// Failure says in words how a failed command ended.
func (c Check) Failure() string {
	if c.TimedOut {
		return "took too long and was killed"
	}
	return fmt.Sprintf("failed with exit status %d", c.ExitCode)
}

// Limits are those that the run had, defaults included.
type Limits struct {
	MaxIterations int
	NoProgress    int // iterations in a row without a new commit; negative: no limit
	Budget        Budget
	Timers        Timers
}

// Result is how the loop ended: facts, without a verdict. The work is on ralph's refs, unless End is EndImport.
type Result struct {
	End        End
	Err        error   // the cause, where End says so; one line
	Missing    Missing // of an End that is a limit; empty after a failure, and for structured output
	Iterations []Iteration
	Fruitless  int     // iterations in a row without a new commit, at the end
	Repeated   bool    // EndAgent: the same failure twice in a row without a new commit
	Signal     string  // of the last iteration; empty: none
	Message    string  // the agent's last message, its last 64 KiB; prose, hostile
	Question   string  // EndNeedsInfo
	Reason     string  // EndNoChange: the agent's
	Refusal    string  // of Config.Accept or Config.Verify
	Setup      []Check // of the setup commands that ran
	Gate       []Check // of the last time the gate ran
	GateRan    bool
	Work       Work
	Usage      agents.Usage
	Unseen     agents.Usage    // the part of Usage that only agents report, although their services' answers passed ralph
	Failure    *agents.Failure // of the agent in the last iteration
	Denied     []agents.Denial // in the last iteration
	Output     *OutputValue
	Limits     Limits
	Full       error // EndBudget: of a limit that is shared with other runs; nil: it is the Budget
	OfAgent    bool  // EndBudget: it is that of the last agent, and there is no other
	Warnings   []string
}

// AllPassed reports that every check passed; of none, too.
func AllPassed(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !c.Passed() })
}

// GatePassed reports that the gate ran and every command passed (an empty gate passes).
func (r Result) GatePassed() bool { return r.GateRan && AllPassed(r.Gate) }
