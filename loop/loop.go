// Package loop drives one run's agent: prompt, iteration, import, gate, and the next iteration, until a fact ends it.
//
// It knows no tracker and no container. It gets an agent (a codec), a sandbox (a place to run commands) and a function
// that imports the commits, and returns facts: a [Result] with typed reasons, which the caller turns into an outcome and
// into words. The caller is the worker that holds the claim. [Run] belongs to one goroutine; runs share nothing,
// so any number of them may go on at once.
//
// An agent's output is hostile and unbounded. It is decoded as it comes, streamed to the caller's files, and only
// bounded tails of it stay in memory. An agent's word decides nothing alone: a completion signal counts together with
// imported commits and a gate that ralph has run.
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

// DefaultSignal is the text with which an agent says that it is done.
const DefaultSignal = "<promise>COMPLETE</promise>"

// Work is what the host has imported from the worktree.
type Work struct {
	Tip     string
	Commits int // base..tip
	New     int // imported this time
}

// Command is a shell command line of the user's (gate, setup): run as `sh -c LINE` inside the sandbox.
type Command struct {
	Line    string        `json:"line"`
	Timeout time.Duration `json:"timeout_ns,omitempty"` // zero means the Timers' Command
}

// Check refuses a command that cannot run.
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

// Budget limits what a run may spend; zero means no limit. It is checked after each iteration and, with a Meter, during it.
type Budget struct {
	Tokens  int64   `json:"tokens,omitempty"` // input + output + cache write
	CostUSD float64 `json:"cost_usd,omitempty"`
}

// Spent reports whether nothing is left.
func (b Budget) Spent(u agents.Usage) bool {
	return b.Tokens > 0 && u.Tokens() >= b.Tokens || b.CostUSD > 0 && u.CostUSD >= b.CostUSD
}

// After is what is left of the budget. Of one that is spent the smallest amount is: zero would be no limit.
func (b Budget) After(u agents.Usage) Budget {
	if b.Tokens > 0 {
		b.Tokens = max(1, b.Tokens-u.Tokens())
	}
	if b.CostUSD > 0 {
		b.CostUSD = max(0.000001, b.CostUSD-u.CostUSD)
	}
	return b
}

// Plus is the budget of what comes after u has been used.
func (b Budget) Plus(u agents.Usage) Budget {
	if b.Tokens > 0 {
		b.Tokens += u.Tokens()
	}
	if b.CostUSD > 0 {
		b.CostUSD += u.CostUSD
	}
	return b
}

// Min is the smaller of two limits, in each unit.
func (b Budget) Min(o Budget) Budget {
	if b.Tokens == 0 || o.Tokens > 0 && o.Tokens < b.Tokens {
		b.Tokens = o.Tokens
	}
	if b.CostUSD == 0 || o.CostUSD > 0 && o.CostUSD < b.CostUSD {
		b.CostUSD = o.CostUSD
	}
	return b
}

// Meter counts what the agent uses, where ralph stands between it and its model.
type Meter interface {
	Limit(b Budget)           // up to where Used may grow; given before each iteration, and after it
	Used() agents.Usage       // since the meter was made
	Passed() Passed           // since Limit was last given
	Changed() <-chan struct{} // gets a value after Used has grown; one value may stand for several changes
	// Full names the shared limit because of which no run may spend more, if this one has used so much; nil: there is none.
	Full(ctx context.Context, used agents.Usage) error
}

// Passed describes the requests that went through a Meter.
type Passed struct {
	Answers  bool  // at least one has ended, or begun to be answered
	Free     bool  // Answers, all have ended, and each was refused or reached no service: nothing was used
	Unpriced bool  // the price of some models is not known: the cost in Used lacks them
	Largest  int64 // tokens of the largest request with its answer
}

// Config is one run's loop. Agent, Sandbox, Import and Prompt are required.
type Config struct {
	Agent   agents.Agent
	Options agents.Options
	Sandbox sandboxes.Sandbox
	Prompt  prompt.Prompt
	// Import takes the agent's commits into the host's repository. It is called after every iteration and at every end,
	// also after an interrupt. Its context outlives the run's, and has a timeout of its own.
	Import func(ctx context.Context) (Work, error)
	// Before is the work the run starts with (commits of earlier attempts).
	Before        Work
	Setup         []Command // run once, before the first iteration
	Gate          []Command // all must pass, in order
	Signals       []string  // any of them completes; default DefaultSignal
	MaxIterations int       // default 10
	NoProgress    int       // iterations in a row without a new commit that end the run; default 3; negative: never
	Timers        Timers
	Budget        Budget
	Iteration     Budget // of each agent process: with a Meter it is ended there, and the next iteration begins
	// Estimate is the usage that counts for an iteration when neither its agent nor the Meter reports any. Nil is like zero: nothing
	// counts.
	Estimate func(agents.Agent) Budget
	// Price adds the cost to tokens that an agent reports without one, when the Meter saw no answer; nil: it stays unknown.
	Price func(a agents.Agent, model string, u agents.Usage) agents.Usage
	Meter Meter // nil: only what the agent reports is counted
	// Shares limit what one agent may spend in the run. After an agent has spent its share, Next names the agent that goes on.
	Shares map[agents.Choice]Budget
	// Next returns the agent that goes on after one that is unavailable, or that has spent its share (it has no Failure then);
	// false: none does. Iterations count anew after one that is unavailable, so it has to return false at some time. Nil: none
	// ever does.
	Next   func(last Iteration) (agents.Link, bool)
	Output *Output // structured output; nil: none
	// Resume says when an iteration goes on in its agent's session of the one before, and is told only what ralph found. The
	// session of an earlier Run is never resumed. Default ResumeAuto.
	Resume Resume
	// WithoutCommits lets a run be done without a commit: the completion signal and the gate are enough.
	WithoutCommits bool
	// Accept checks the work before the gate; its error is feedback for the agent, as a failing gate is. Nil accepts
	// everything.
	Accept func(ctx context.Context) error
	// Verify checks finished work once more where the agent has left nothing but its commits, after the gate has passed in
	// the worktree. Its error is feedback like Accept's. Nil verifies nothing.
	Verify    func(ctx context.Context) error
	Unchanged func(commits int, gate []Check) bool // reports after an iteration that no commits change the gate's result; nil: never
	// Feedback is for the first iteration, from an earlier run.
	Feedback string
	// Interrupt, when closed, ends the run gracefully: the agent is asked to end, its commits are imported.
	Interrupt <-chan struct{}
	// Observe gets every event, from one goroutine at a time; it must not block for long.
	Observe func(Event)
	// Stream returns where the raw output of an iteration ("agent-1.jsonl", "agent-1.stderr") or a command
	// ("gate-1-1.log" is the first gate command after iteration 1, "setup-1.log") goes. RunGate counts as iteration 0. Nil discards.
	Stream func(name string) (io.WriteCloser, error)
}

func (c Config) withDefaults() Config {
	if len(c.Signals) == 0 {
		c.Signals = []string{DefaultSignal}
	}
	c.MaxIterations, c.NoProgress, c.Timers = cmp.Or(c.MaxIterations, 10), cmp.Or(c.NoProgress, 3), c.Timers.withDefaults()
	return c
}

// missing names the required parts that a config lacks.
func (c Config) missing() error {
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

// Validate reports everything that is wrong with a user's choices, all at once. It starts nothing, and Agent, Sandbox and Import may
// be missing, so that callers can refuse a run before they make a worktree for it. Run reports them with the rest.
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
