package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// End is the reason why a loop ended; the constants are all of them.
type End string

const (
	EndDone          End = "done"              // the agent gave the signal, and the gate passed
	EndNoChange      End = "no-change"         // the agent says that no change is needed, and the gate passed
	EndNeedsInfo     End = "needs-info"        // the agent asks a question
	EndMaxIterations End = "max-iterations"    // see Limits
	EndNoProgress    End = "no-progress"       // see Limits
	EndUnchanged     End = "gate-unchanged"    // the gate fails as on the base, whatever the agent commits; see Config.Unchanged
	EndBudget        End = "budget"            // see Limits
	EndTimeout       End = "run-timeout"       // see Limits
	EndDenied        End = "permission-denied" // missing permissions keep the agent from its work; see Denied
	EndUnavailable   End = "agent-unavailable" // overloaded, not logged in, or cannot be started; see Failure
	EndAgent         End = "agent-failed"      // a fatal failure, or the same one twice without a new commit; see Failure
	EndSetup         End = "setup-failed"      // see Setup
	EndPrompt        End = "prompt-failed"     // an error in the prompt or elsewhere in the Config; see Err
	EndSandbox       End = "sandbox-failed"    // see Err
	EndKilled        End = "sandbox-killed"    // the agent, or a check, has killed the process that runs commands in the sandbox; see Err
	EndImport        End = "import-failed"     // see Err
	EndOutput        End = "output-invalid"    // see Err
	EndInterrupted   End = "interrupted"       // see Err
)

// Missing is the reason why the last iteration did not finish the run.
type Missing string

const (
	MissingSignal  Missing = "signal"           // the agent did not signal that it is done
	MissingCommits Missing = "commits"          // it did, but without a commit
	MissingAccept  Missing = "accept"           // Config.Accept rejected the work; see Refusal
	MissingVerify  Missing = "verify"           // Config.Verify rejected the work; see Refusal
	MissingGate    Missing = "gate"             // a gate command failed; see Gate
	MissingBudget  Missing = "iteration-budget" // the agent was ended because it used up the budget of one iteration, or its own
)

// Ending is the way in which an iteration's process ended.
type Ending string

const (
	EndingExit            Ending = "exit"              // exited by itself
	EndingGrace           Ending = "grace"             // killed: it hung after its completion signal; counts as finished
	EndingIdle            Ending = "idle-timeout"      // killed: no output for too long
	EndingIteration       Ending = "iteration-timeout" // killed: it took too long
	EndingBudget          Ending = "budget"            // killed: the budget was used up
	EndingIterationBudget Ending = "iteration-budget"  // killed: the budget of one iteration was used up
	EndingAgentBudget     Ending = "agent-budget"      // killed: the agent's own budget was used up
	EndingRun             Ending = "run-timeout"       // killed: the whole run took too long
	EndingInterrupted     Ending = "interrupted"       // asked to end, or killed, because the run was stopped
	EndingNotStarted      Ending = "not-started"
	EndingSandbox         Ending = "sandbox-failed" // its end is unknown
)

// Iteration is the result of one agent process.
type Iteration struct {
	Number      int             `json:"number"`
	Agent       string          `json:"agent,omitempty"` // name of the agent
	Model       string          `json:"model,omitempty"` // empty: the agent's default
	Ended       time.Time       `json:"ended,omitzero"`
	Signal      string          `json:"signal,omitempty"` // the completion signal that counted; empty: none
	Ending      Ending          `json:"ending"`
	ExitCode    int             `json:"exit_code"`
	Failure     *agents.Failure `json:"failure,omitempty"`
	Denied      []agents.Denial `json:"denied,omitempty"` // tool calls that the agent's permission system refused
	Usage       agents.Usage    `json:"usage"`
	Unmetered   agents.Usage    `json:"unseen,omitzero"` // the part of Usage that only the agent reports, although ralph saw its service's answers
	UsedNothing bool            `json:"free,omitempty"`  // nothing was used: ralph saw that its service refused all requests or was not reached
	Commits     int             `json:"commits"`         // number of new commits
	Duration    time.Duration   `json:"duration_ns"`
	Session     string          `json:"session,omitempty"`
	Resumed     bool            `json:"resumed,omitempty"` // in the session of the previous iteration
	Prompt      string          `json:"prompt,omitempty"`  // SHA-256 of the prompt
	Stderr      string          `json:"-"`                 // if the agent failed: the last 50 lines of its standard error; hostile
}

// Choice returns the agent and its model.
func (it Iteration) Choice() agents.Choice { return agents.Choice{Agent: it.Agent, Model: it.Model} }

// Check is the result of one gate or setup command.
type Check struct {
	Command  string        `json:"command"`
	ExitCode int           `json:"exit_code"` // after death by a signal: 128 plus its number
	Duration time.Duration `json:"duration_ns"`
	TimedOut bool          `json:"timed_out,omitempty"`
	Limit    string        `json:"limit,omitempty"` // the time limit that it reached, for people
	Tail     string        `json:"tail"`            // last 4 KiB of the output
}

// Passed reports success.
func (c Check) Passed() bool { return c.ExitCode == 0 && !c.TimedOut }

// Failure describes how a failed command ended.
func (c Check) Failure() string {
	if c.TimedOut {
		return c.Ending()
	}
	return "failed with " + c.Ending()
}

// Ending describes how a command ended, without a judgement.
func (c Check) Ending() string {
	if c.TimedOut {
		return "took longer than " + cmp.Or(c.Limit, "its time limit") + " and was killed"
	}
	return fmt.Sprintf("exit status %d", c.ExitCode)
}

// shortDuration formats a duration without zeros at its end: 30m.
func shortDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Limits are the limits of the run, including defaults.
type Limits struct {
	MaxIterations int
	NoProgress    int // maximum iterations in a row without a new commit; negative: no limit
	Budget        Budget
	Timers        Timers
}

// Result is the result of the loop: facts, without a verdict. The work is on ralph's refs, unless End is EndImport.
type Result struct {
	End                     End
	Err                     error   // cause of an End whose comment says "see Err"; one line
	Missing                 Missing // set if End is a limit; empty after a failure, and for structured output
	Iterations              []Iteration
	IterationsWithoutCommit int     // iterations in a row without a new commit, at the end
	Repeated                bool    // EndAgent: the same failure twice in a row without a new commit
	Signal                  string  // completion signal of the last iteration; empty: none
	Message                 string  // the last 64 KiB of the agent's last message; prose, hostile
	Question                string  // EndNeedsInfo
	Reason                  string  // EndNoChange: the agent's reason
	Refusal                 string  // advice of Config.Accept or Config.Verify
	Setup                   []Check // results of the setup commands that ran
	Gate                    []Check // results of the last run of the gate
	GateRan                 bool
	Work                    Work
	Usage                   agents.Usage
	Unmetered               agents.Usage    // the part of Usage that only agents report, although ralph saw their services' answers
	Failure                 *agents.Failure // of the agent in the last iteration
	Denied                  []agents.Denial // in the last iteration
	Output                  *OutputValue
	Limits                  Limits
	SharedLimitError        error // EndBudget: the limit shared with other runs that is used up; nil: it is the Budget
	AgentBudgetExhausted    bool  // EndBudget: the budget of the last agent is used up, and there is no other agent
	Warnings                []string
}

// AllPassed reports whether every check passed; true without checks.
func AllPassed(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !c.Passed() })
}

// GatePassed reports whether the gate ran and every command passed (an empty gate passes).
func (r Result) GatePassed() bool { return r.GateRan && AllPassed(r.Gate) }
