// Package agents describes coding CLIs: how one is started and what its output means.
//
// An [Agent] is a codec, never a process. It builds an [Invocation] from a [Request], and its [Decoder] turns the
// lines the program prints into [Event] values and, when it has ended, into a [Report]. Who runs the program, where,
// and with which timers is the business of package loop and of the sandbox.
//
// Agents are values, found by name in a [Registry] that the program composes. Agents are safe for concurrent use;
// a Decoder belongs to one process and one goroutine.
package agents

import (
	"encoding/json"
	"time"
)

// Options are a user's choices for an agent. An agent refuses, in Check, what it does not support.
type Options struct {
	Model string // as the CLI spells it; empty leaves the choice to the CLI
	// Effort is the reasoning effort. Every CLI that has one knows low, medium, high and xhigh; claude-code also max,
	// codex also none and minimal. Empty leaves the choice to the CLI.
	Effort string
	// PermissionMode is the CLI's own permission mode and replaces skipping permissions: for claude-code a
	// --permission-mode, for codex a sandbox mode.
	PermissionMode string
	// SkipPermissions lets the agent act without asking. Callers set it when the sandbox isolates, or when the user
	// asked for it.
	SkipPermissions bool
	Args            []string // extra arguments, added as they are; flags that ralph itself sets are refused
	// Env is NAME=value settings for the agent's process. They win over what the agent sets by itself (such as its
	// number of retries) and over the sandbox's environment, but not over Request.Vars.
	Env     []string
	Command []string // agent "command" only: the program and its arguments
}

// Request is one iteration's work.
type Request struct {
	Prompt  string
	Options Options
	Session string // session to resume; empty starts a new one
	Fork    bool   // resume into a new session
	// Vars are facts about the run (RALPH_ISSUE_KEY, RALPH_ISSUE_TITLE, RALPH_BRANCH, RALPH_ITERATION, …) that
	// every agent gets in its environment.
	Vars []string
}

// Invocation is how to start the program.
type Invocation struct {
	Argv  []string
	Stdin string   // the prompt; always delivered on stdin
	Env   []string // added to the sandbox's environment, over which it wins; each name once
}

// Agent is one coding CLI.
type Agent interface {
	// Name is the name users write, such as "claude-code".
	Name() string
	// Check refuses options the agent does not support, in one line that names the option and the mend.
	Check(Options) error
	// Invocation builds the command line. It fails only for what Check refuses and for a prompt the program cannot
	// take.
	Invocation(Request) (Invocation, error)
	// NewDecoder returns a decoder for one process.
	NewDecoder() Decoder
}

// Decoder reads one process's output. Nothing a program prints makes it fail: what it does not know is an
// EventUnknown.
type Decoder interface {
	// Line takes one line of standard output, without its end. The slice is only valid during the call.
	Line(line []byte) []Event
	// Finish takes how the process ended and returns what the whole stream means. It is called once, last.
	Finish(Ending) Report
}

// Ending is how the process ended.
type Ending struct {
	ExitCode   int
	Signal     string // "SIGKILL"; empty for a regular exit
	StderrTail string // the last few KiB of standard error
	StartErr   error  // the program could not be started; nothing else is set
}

// EventKind says what an Event is. The set is open: readers ignore kinds they do not know.
type EventKind string

const (
	// EventMessage is a piece of the main agent's own prose. Pieces with the same Message belong to one message. An
	// empty Text starts a message that has (so far) no prose.
	EventMessage EventKind = "message"
	// EventTool is a tool the agent (or a sub-agent) calls: Name and a short Detail.
	EventTool EventKind = "tool"
	// EventSession gives the session id.
	EventSession EventKind = "session"
	// EventRetry is the CLI waiting for its model service.
	EventRetry EventKind = "retry"
	// EventNotice is anything else worth showing; never prose.
	EventNotice EventKind = "notice"
	// EventUnknown is a line or event the decoder does not know; shown and counted.
	EventUnknown EventKind = "unknown"
)

// Event is one thing the agent did.
type Event struct {
	Kind    EventKind
	Message string // EventMessage: which message the text belongs to
	Text    string
	Name    string // EventTool: the tool
	Detail  string // EventTool: what it is called with, shortened
	Session string
}

// Usage counts tokens. Input excludes what was read from or written to the cache.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	// CostUSD is what the CLI itself reported; 0 when it reports none.
	CostUSD float64 `json:"cost_usd"`
}

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		CostUSD: u.CostUSD + v.CostUSD,
	}
}

// Report is what a whole process meant.
type Report struct {
	Session string // what a later Request may resume; empty when there is nothing to resume
	Usage   Usage
	// SessionTotal means that Usage counts the session from its start, processes resumed from included, because the
	// CLI tells no other number. Spent takes the earlier ones off.
	SessionTotal bool
	// Failure is nil when the agent ended well. An agent that exits 0 but reported an error has failed.
	Failure *Failure
	// Structured is what the CLI itself validated against a schema; nil when it did not, or above 1 MiB.
	Structured json.RawMessage
	Unknown    int // lines and events the decoder did not know
}

// Spent is what this process used, when before is the Usage reported by the process that it resumed (the zero Usage for
// a new session).
func (r Report) Spent(before Usage) Usage {
	if !r.SessionTotal {
		return r.Usage
	}
	return Usage{
		Input: max(r.Usage.Input-before.Input, 0), Output: max(r.Usage.Output-before.Output, 0),
		CacheRead:  max(r.Usage.CacheRead-before.CacheRead, 0),
		CacheWrite: max(r.Usage.CacheWrite-before.CacheWrite, 0),
		CostUSD:    max(r.Usage.CostUSD-before.CostUSD, 0),
	}
}

// Class is why an agent failed, decided from structure (events, exit status), never from prose.
type Class string

const (
	RateLimit     Class = "rate-limit"
	Overload      Class = "overload"    // the model service is overloaded, failing or out of reach
	Auth          Class = "auth"        // not logged in, key refused, no credit
	BadRequest    Class = "bad-request" // the request or the command line was refused and would be again
	ModelNotFound Class = "model-not-found"
	MaxTurns      Class = "max-turns"
	Killed        Class = "killed"      // ended by a signal
	NotStarted    Class = "not-started" // the program is missing or could not be executed
	OtherFailure  Class = "other"
)

// Unavailable reports the classes where the agent, not its work, is at fault, and waiting or another agent helps.
func (c Class) Unavailable() bool { return c == RateLimit || c == Overload || c == Auth }

// Fatal reports the classes where another iteration cannot help.
func (c Class) Fatal() bool {
	return c == BadRequest || c == ModelNotFound || c == NotStarted || c.Unavailable()
}

// Failure is how an agent failed.
type Failure struct {
	Class   Class  `json:"class"`
	Message string `json:"message"` // one line for people, bounded
	// ResetAt is when a rate limit ends; zero when the CLI does not say.
	ResetAt time.Time `json:"reset_at,omitzero"`
}

func (f *Failure) Error() string { return string(f.Class) + ": " + f.Message }
