// Package loop runs an agent for one run: prompt, iteration, import, gate, and the next iteration, until a fact ends the loop.
//
// It knows nothing about trackers and containers. It gets an agent (a codec), a sandbox (a place to run commands) and a function
// that imports the commits, and returns facts: a [Result] with typed reasons, which the caller turns into an outcome and into
// words. The caller is the worker that holds the claim. A [Run] belongs to one goroutine. Runs share nothing, so any
// number of them may run concurrently.
//
// An agent's output is hostile and unlimited. It is decoded as it arrives and streamed to the caller's files; only limited parts
// of it stay in memory. An agent's statement alone decides nothing: a completion signal counts together with imported commits and
// a gate that ralph has run.
package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/sandboxes"
)

// DefaultSignal is the text by which an agent signals that it is done.
const DefaultSignal = "<promise>COMPLETE</promise>"

// Work is the state of the commits that the host has imported from the worktree.
type Work struct {
	Tip     string
	Commits int // number of commits in base..tip
	New     int // number of commits imported this time
}

// Command is a shell command line of the user's (gate, setup), run as `sh -c LINE` in the sandbox.
type Command struct {
	Line    string        `json:"line"`
	Timeout time.Duration `json:"timeout_ns,omitempty"` // zero: Timers.Command
	Limit   string        `json:"limit,omitempty"`      // what people call Timeout
}

// Check rejects a command that cannot run.
func (c Command) Check() error {
	switch {
	case strings.TrimSpace(c.Line) == "":
		return errors.New("a gate or setup command is empty")
	case strings.ContainsRune(c.Line, 0):
		return fmt.Errorf("command %q has a NUL byte", neutral.Shorten(c.Line, 100))
	case c.Timeout < 0:
		return fmt.Errorf("command `%s`: its timeout is %s; it must not be negative", neutral.Excerpt(c.Line, 100), c.Timeout)
	}
	return nil
}

// Budget limits the usage of a run; zero means no limit. It is checked after each iteration and, with a Meter, during it.
type Budget struct {
	Tokens  int64   `json:"tokens,omitempty"` // input + output + cache write
	CostUSD float64 `json:"cost_usd,omitempty"`
}

// Exhausted reports whether the usage has reached the budget.
func (b Budget) Exhausted(u agents.Usage) bool {
	return b.Tokens > 0 && u.Tokens() >= b.Tokens || b.CostUSD > 0 && u.CostUSD >= b.CostUSD
}

// Remaining returns the rest of the budget. If nothing is left, it is the smallest positive amount, since zero would mean no limit.
func (b Budget) Remaining(u agents.Usage) Budget {
	if b.Tokens > 0 {
		b.Tokens = max(1, b.Tokens-u.Tokens())
	}
	if b.CostUSD > 0 {
		b.CostUSD = max(0.000001, b.CostUSD-u.CostUSD)
	}
	return b
}

// Plus returns the budget increased by u: the limit of a total that already includes u.
func (b Budget) Plus(u agents.Usage) Budget {
	if b.Tokens > 0 {
		b.Tokens += u.Tokens()
	}
	if b.CostUSD > 0 {
		b.CostUSD += u.CostUSD
	}
	return b
}

// Min returns the smaller of two limits, in each unit.
func (b Budget) Min(o Budget) Budget {
	if b.Tokens == 0 || o.Tokens > 0 && o.Tokens < b.Tokens {
		b.Tokens = o.Tokens
	}
	if b.CostUSD == 0 || o.CostUSD > 0 && o.CostUSD < b.CostUSD {
		b.CostUSD = o.CostUSD
	}
	return b
}

// Meter counts the agent's usage where ralph is the proxy between the agent and its model service.
type Meter interface {
	Limit(b Budget)           // sets the limit of Used; called before and after each iteration
	Used() agents.Usage       // usage since the meter was made
	Changed() <-chan struct{} // receives a value after Used has grown; one value may stand for several changes
	// Requests describes the requests since the last call of Limit. Refusals are those that concern the agent.
	Requests(by agents.Link) MeteredRequests
	// SharedLimitError returns an error that names a limit shared with other runs, if this run's usage reaches it; nil: none.
	SharedLimitError(ctx context.Context, used agents.Usage) error
}

// MeteredRequests describes the requests that went through a Meter.
type MeteredRequests struct {
	Answered       bool  // at least one request has ended, or its answer has begun
	UsedNothing    bool  // Answered, all requests have ended, and each was refused or reached no service: nothing was used
	Unpriced       bool  // the prices of some models are unknown, so that the cost in Used lacks them
	LargestRequest int64 // tokens of the largest request with its answer
	// Refused: the service has refused a request for the agent's model because of a limit, an overload or the login, or has broken
	// off an answer, and has answered no later one. LimitEnd is the end of the limit that it has stated; zero: none.
	Refused  bool
	LimitEnd time.Time
	// Unreached says why the service could not be reached at all, with its address; empty: it could.
	Unreached string
}

// Sandbox is the place where commands run. [sandboxes.Sandbox] describes Exec.
type Sandbox interface {
	Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error)
}

// Config configures the loop of one run. Agent, Sandbox, Import and Prompt are required.
type Config struct {
	Agent   agents.Agent
	Options agents.Options
	Sandbox Sandbox
	Prompt  prompt.Prompt
	// Import imports the agent's commits into the host's repository. It is called after every iteration and at every end, also
	// after an interrupt. Its context is not cancelled with the run's, and has a timeout of its own.
	Import func(ctx context.Context) (Work, error)
	// EarlierWork is the work with which the run starts (commits of earlier attempts).
	EarlierWork   Work
	Setup         []Command // run once, before the first iteration
	Gate          []Command // all must pass, in order
	Signals       []string  // each of them completes the work; default DefaultSignal
	MaxIterations int       // default 10
	NoProgress    int       // maximum iterations in a row without a new commit; default 3; negative: no limit
	Timers        Timers
	Budget        Budget
	Iteration     Budget // for each agent process: with a Meter the process is killed at the limit, and the next iteration begins
	// Estimate returns the usage to count for an iteration when neither its agent nor the Meter reports any. If it is nil or
	// returns zero, nothing counts.
	Estimate func(agents.Agent) Budget
	// Price adds the cost to tokens that an agent reports without one, if the Meter saw no answer; nil: the cost stays unknown.
	Price func(a agents.Agent, model string, u agents.Usage) agents.Usage
	Meter Meter // nil: only usage reported by the agent counts
	// Watched reports whether all requests of an agent pass the Meter, so that a refusal that it has not seen did not happen. Nil: of
	// no agent.
	Watched func(agents.Agent) bool
	// Shares limit the usage of single agents in the run. After an agent has used up its share, Next selects another.
	Shares map[agents.Choice]Budget
	// Next returns the agent that continues after one that is unavailable or has used up its share (last has no Failure then);
	// false: there is none. Since an unavailable agent's iterations do not count towards MaxIterations, Next must return false at
	// some point. Nil: there is never another agent.
	Next   func(last Iteration) (agents.Link, bool)
	Output *Output // structured output; nil: none
	// Resume selects when an iteration resumes its agent's previous session and gets only ralph's feedback. The session of an
	// earlier Run is never resumed. Default ResumeAuto.
	Resume Resume
	// WithoutCommits allows a run to be done without a commit: the completion signal and the gate suffice.
	WithoutCommits bool
	// Accept checks the work before the gate. It returns feedback for the agent, like a failing gate; empty: it accepts the work.
	// Nil accepts everything.
	Accept func(ctx context.Context) (advice string)
	// Verify checks finished work again in a place that has only the agent's commits, after the gate has passed in the
	// worktree. It returns feedback like Accept. Nil verifies nothing.
	Verify    func(ctx context.Context) (advice string)
	Unchanged func(commits int, gate []Check) bool // reports after an iteration whether no commits can change the gate's result; nil: never
	// Feedback is the feedback for the first iteration, from an earlier run.
	Feedback string
	// Interrupt ends the run gracefully when it is closed: the agent is asked to end, and its commits are imported.
	Interrupt <-chan struct{}
	// Observe gets every event. Calls do not overlap, and must not block for long.
	Observe func(Event)
	// Stream opens the file for the raw output of an iteration ("agent-1.jsonl", "agent-1.stderr") or a command ("gate-1-1.log"
	// is the first gate command after iteration 1, "setup-1.log"). RunCommands counts as iteration 0. Nil discards the output.
	Stream func(name string) (io.WriteCloser, error)
}

func (c Config) withDefaults() Config {
	if len(c.Signals) == 0 {
		c.Signals = []string{DefaultSignal}
	}
	c.MaxIterations, c.NoProgress, c.Timers = cmp.Or(c.MaxIterations, 10), cmp.Or(c.NoProgress, 3), c.Timers.withDefaults()
	return c
}

// checkRequired returns an error that names the missing required fields.
func (c Config) checkRequired() error {
	var names []string
	if c.Agent == nil {
		names = append(names, "Agent")
	}
	if c.Sandbox == nil {
		names = append(names, "Sandbox")
	}
	if c.Import == nil {
		names = append(names, "Import")
	}
	if names == nil {
		return nil
	}
	return errors.New("required and missing: " + strings.Join(names, ", "))
}

// Validate returns all errors in a user's choices, joined. It starts nothing, and does not require Agent, Sandbox and Import, so
// that callers can reject a run before they make a worktree for it. Run checks these, too.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Agent != nil {
		errs = append(errs, agents.Check(c.Agent, c.Options))
	}
	errs = append(errs, c.Prompt.Check(slices.Collect(maps.Keys(c.PromptVars(1, "")))))
	if slices.Contains(c.Signals, "") {
		errs = append(errs, errors.New("completion signal is empty; give it some text"))
	}
	if c.MaxIterations < 0 {
		errs = append(errs, fmt.Errorf("max iterations is %d; it must be at least 1", c.MaxIterations))
	}
	for _, cmd := range slices.Concat(c.Setup, c.Gate) {
		errs = append(errs, cmd.Check())
	}
	errs = append(errs, c.Timers.validate(), c.validateOutput(), c.Resume.validate())
	return errors.Join(errs...)
}
