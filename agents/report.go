package agents

import (
	"encoding/json"
	"time"
)

// EventKind is the kind of an Event. The set is open: readers ignore unknown kinds.
type EventKind string

const (
	// EventMessage is a part of the main agent's own prose. Parts with the same Message belong to one message. An empty Text
	// starts a message that has no prose (yet).
	EventMessage EventKind = "message"
	// EventTool is a tool call by the agent or a sub-agent: Name and a short Detail.
	EventTool EventKind = "tool"
	// EventDenied is a tool call that the agent's own permission system refused: Name and a short Detail.
	EventDenied EventKind = "permission-denied"
	// EventSession has the session ID.
	EventSession EventKind = "session"
	// EventRetry means that the CLI waits for its model service.
	EventRetry EventKind = "retry"
	// EventNotice is other information worth showing; never prose.
	EventNotice EventKind = "notice"
	// EventUnknown is a line or event that the decoder does not know; it is shown and counted.
	EventUnknown EventKind = "unknown"
)

// Event is one action of the agent.
type Event struct {
	Kind    EventKind
	Message string // EventMessage: ID of the message that the text belongs to
	Text    string
	Name    string // EventTool, EventDenied: the tool
	Detail  string // EventTool, EventDenied: the arguments or the reason, shortened
	Session string
}

// Usage counts tokens. Input excludes tokens read from or written to the cache.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	// CostUSD is the cost reported by the CLI, or computed from known prices; 0 if unknown. It excludes Unpriced tokens.
	CostUSD float64 `json:"cost_usd,omitzero"`
	// Estimated is the number of tokens whose count or cost is an estimate.
	Estimated int64 `json:"estimated,omitempty"`
	// Unpriced is the number of tokens of models with unknown prices. It is 0 if the CLI reports the cost.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Tokens returns the number that budgets count: all tokens except those read from the cache.
func (u Usage) Tokens() int64 { return u.Input + u.Output + u.CacheWrite }

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		CostUSD: u.CostUSD + v.CostUSD, Estimated: u.Estimated + v.Estimated, Unpriced: u.Unpriced + v.Unpriced,
	}
}

// Larger returns the larger of each count, for two measurements of the same usage that may each have missed some.
func (u Usage) Larger(v Usage) Usage {
	return Usage{
		Input: max(u.Input, v.Input), Output: max(u.Output, v.Output),
		CacheRead: max(u.CacheRead, v.CacheRead), CacheWrite: max(u.CacheWrite, v.CacheWrite),
		CostUSD: max(u.CostUSD, v.CostUSD), Estimated: max(u.Estimated, v.Estimated), Unpriced: max(u.Unpriced, v.Unpriced),
	}
}

// Minus returns u minus before, an earlier measurement; no count is below 0.
func (u Usage) Minus(before Usage) Usage {
	return Usage{
		Input: max(u.Input-before.Input, 0), Output: max(u.Output-before.Output, 0),
		CacheRead: max(u.CacheRead-before.CacheRead, 0), CacheWrite: max(u.CacheWrite-before.CacheWrite, 0),
		CostUSD: max(u.CostUSD-before.CostUSD, 0), Estimated: max(u.Estimated-before.Estimated, 0),
		Unpriced: max(u.Unpriced-before.Unpriced, 0),
	}
}

// Denial is a tool call that the agent's own permission system refused. Its texts are single lines of limited length.
type Denial struct {
	Tool   string `json:"tool"`
	Detail string `json:"detail,omitempty"` // arguments, or the reason
}

// Report is the result of a whole process.
type Report struct {
	Session string // session ID that a later Request may resume; empty: there is none
	Usage   Usage
	Model   string // model of the last answer; empty: unknown
	// SessionTotal is set if Usage includes the earlier processes of a resumed session. Spent subtracts them.
	SessionTotal bool
	// Context is the number of tokens in the last request of the main agent and its answer, with which a resumed session begins.
	// 0: unknown.
	Context int64
	// Failure is nil if the agent succeeded. An agent that exits 0 but reported an error has failed.
	Failure *Failure
	// Denied has the first few refused tool calls.
	Denied []Denial
	// Structured is output that the CLI validated against a schema; nil if there is none or it exceeds 1 MiB.
	Structured json.RawMessage
	Unknown    int // number of lines and events that the decoder did not know
}

// Spent returns the usage of this process. before is the Usage of the process that it resumed, or zero for a new session.
func (r Report) Spent(before Usage) Usage {
	if !r.SessionTotal {
		return r.Usage
	}
	return r.Usage.Minus(before)
}

// Class is the kind of a failure, derived from structure (events, exit status), never from prose.
type Class string

const (
	RateLimit     Class = "rate-limit"
	Overload      Class = "overload"    // the model service is overloaded or failing
	Unreachable   Class = "unreachable" // the model service cannot be reached
	Auth          Class = "auth"        // not logged in, or the login was rejected
	NoCredit      Class = "no-credit"   // the account has no credit left, or has reached a limit of its owner
	BadRequest    Class = "bad-request" // the request or the command line was rejected, and would be again
	ModelNotFound Class = "model-not-found"
	MaxTurns      Class = "max-turns"
	Killed        Class = "killed"      // ended by a signal
	NotStarted    Class = "not-started" // the program is missing or could not be executed
	OtherFailure  Class = "other"
)

// Unavailable reports whether the agent, not its work, is at fault, so that waiting or another agent helps.
func (c Class) Unavailable() bool {
	return c == RateLimit || c == Overload || c == Unreachable || c == Auth || c == NoCredit
}

// Fatal reports whether another iteration cannot help.
func (c Class) Fatal() bool {
	return c == BadRequest || c == ModelNotFound || c == NotStarted || c.Unavailable()
}

// Failure is the reason why an agent failed.
type Failure struct {
	Class   Class  `json:"class"`
	Message string `json:"message"` // one line for people; see NewFailure
	// ResetAt is the end of a rate limit; zero if the CLI does not say.
	ResetAt time.Time `json:"reset_at,omitzero"`
	// Address is the model service's address, if the user has set it.
	Address string `json:"address,omitempty"`
}

// unavailableFor is the time to wait for an agent that does not state when it is available again.
const unavailableFor = 5 * time.Minute

// AvailableAt returns when an agent that failed at the given time is expected to be available. It is zero if waiting does not help: a
// missing login or program counts as soon as a person has provided it.
func (f *Failure) AvailableAt(failed time.Time) time.Time {
	if f.Class != RateLimit && f.Class != Overload && f.Class != Unreachable || f.ResetAt.After(failed) {
		return f.ResetAt
	}
	return failed.Add(unavailableFor)
}

func (f *Failure) Error() string { return string(f.Class) + ": " + f.Message }
