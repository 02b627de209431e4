package agents

import (
	"encoding/json"
	"time"
)

// EventKind says what an Event is. The set is open: readers ignore kinds they do not know.
type EventKind string

const (
	// EventMessage is a piece of the main agent's own prose. Pieces with the same Message belong to one message. An
	// empty Text starts a message that has (so far) no prose.
	EventMessage EventKind = "message"
	// EventTool is a tool the agent (or a sub-agent) calls: Name and a short Detail.
	EventTool EventKind = "tool"
	// EventDenied is a tool call that the agent's own permission system refused: Name and a short Detail.
	EventDenied EventKind = "permission-denied"
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
	Name    string // EventTool, EventDenied: the tool
	Detail  string // EventTool, EventDenied: its arguments or the reason, shortened
	Session string
}

// Usage counts tokens. Input excludes tokens that were read from or written to the cache.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	// CostUSD is the cost as the CLI reported it, or at the known prices; 0 when neither says it. It lacks what is Unpriced.
	CostUSD float64 `json:"cost_usd,omitzero"`
	// Estimated is how many of the tokens are an estimate: themselves or their cost.
	Estimated int64 `json:"estimated,omitempty"`
	// Unpriced is how many of the tokens are of models whose price is not known. Where the CLI reports the cost it is 0.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Tokens is what budgets count: tokens read from the cache are left out.
func (u Usage) Tokens() int64 { return u.Input + u.Output + u.CacheWrite }

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		CostUSD: u.CostUSD + v.CostUSD, Estimated: u.Estimated + v.Estimated, Unpriced: u.Unpriced + v.Unpriced,
	}
}

// Larger returns the larger of each count: two that saw the same spending may each have missed some.
func (u Usage) Larger(v Usage) Usage {
	return Usage{
		Input: max(u.Input, v.Input), Output: max(u.Output, v.Output),
		CacheRead: max(u.CacheRead, v.CacheRead), CacheWrite: max(u.CacheWrite, v.CacheWrite),
		CostUSD: max(u.CostUSD, v.CostUSD), Estimated: max(u.Estimated, v.Estimated), Unpriced: max(u.Unpriced, v.Unpriced),
	}
}

// Less returns what u has more than before, which an earlier look has seen.
func (u Usage) Less(before Usage) Usage {
	return Usage{
		Input: max(u.Input-before.Input, 0), Output: max(u.Output-before.Output, 0),
		CacheRead: max(u.CacheRead-before.CacheRead, 0), CacheWrite: max(u.CacheWrite-before.CacheWrite, 0),
		CostUSD: max(u.CostUSD-before.CostUSD, 0), Estimated: max(u.Estimated-before.Estimated, 0),
		Unpriced: max(u.Unpriced-before.Unpriced, 0),
	}
}

// Denial is a tool call that the agent's own permission system refused. Its texts are bounded lines.
type Denial struct {
	Tool   string `json:"tool"`
	Detail string `json:"detail,omitempty"` // its arguments, or the reason
}

// Report is what a whole process meant.
type Report struct {
	Session string // what a later Request may resume; empty when there is nothing to resume
	Usage   Usage
	Model   string // that answered last; empty: the program does not say
	// SessionTotal means that Usage counts the whole session, including the processes that this one resumed. Spent
	// subtracts them.
	SessionTotal bool
	// Context is how many tokens the last request of the main agent and its answer have: what a resumed session begins with.
	// 0: the program does not say.
	Context int64
	// Failure is nil when the agent ended well. An agent that exits 0 but reported an error has failed.
	Failure *Failure
	// Denied are the refused tool calls, the first few of them.
	Denied []Denial
	// Structured is output that the CLI itself validated against a schema; nil when it did not, or above 1 MiB.
	Structured json.RawMessage
	Unknown    int // lines and events the decoder did not know
}

// Spent is what this process used. before is the Usage of the process that it resumed, or zero for a new session.
func (r Report) Spent(before Usage) Usage {
	if !r.SessionTotal {
		return r.Usage
	}
	return r.Usage.Less(before)
}

// Class is why an agent failed, decided from structure (events, exit status), never from prose.
type Class string

const (
	RateLimit     Class = "rate-limit"
	Overload      Class = "overload"    // the model service is overloaded, failing or out of reach
	Auth          Class = "auth"        // not logged in, or the login was refused
	NoCredit      Class = "no-credit"   // the account has no money left, or has reached what its owner allows
	BadRequest    Class = "bad-request" // the request or the command line was refused and would be again
	ModelNotFound Class = "model-not-found"
	MaxTurns      Class = "max-turns"
	Killed        Class = "killed"      // ended by a signal
	NotStarted    Class = "not-started" // the program is missing or could not be executed
	OtherFailure  Class = "other"
)

// Unavailable reports the classes where the agent, not its work, is at fault, and waiting or another agent helps.
func (c Class) Unavailable() bool {
	return c == RateLimit || c == Overload || c == Auth || c == NoCredit
}

// Fatal reports the classes where another iteration cannot help.
func (c Class) Fatal() bool {
	return c == BadRequest || c == ModelNotFound || c == NotStarted || c.Unavailable()
}

// Failure is how an agent failed.
type Failure struct {
	Class   Class  `json:"class"`
	Message string `json:"message"` // one line for people; see Fail
	// ResetAt is when a rate limit ends; zero when the CLI does not say.
	ResetAt time.Time `json:"reset_at,omitzero"`
}

// unavailableFor is how long an agent that does not say when it is back is left alone.
const unavailableFor = 5 * time.Minute

// Back is when an agent that failed at the time given is expected back. It is zero where waiting does not help: a missing
// login or program counts as soon as a person has provided it.
func (f *Failure) Back(failed time.Time) time.Time {
	if f.Class != RateLimit && f.Class != Overload || f.ResetAt.After(failed) {
		return f.ResetAt
	}
	return failed.Add(unavailableFor)
}

func (f *Failure) Error() string { return string(f.Class) + ": " + f.Message }
