// Package agents describes coding CLIs: how to start one, how it logs in, and how to interpret its output.
//
// An [Agent] is a codec and starts no process. It builds an [Invocation] from a [Request], and its [Decoder] turns the lines
// that the program prints into [Event] values and, at the end, into a [Report]. Package loop and the sandbox decide who runs
// the program, where, and with which timers.
//
// Each agent is one file (and a second for a long decoder) with its program, login, model service, installation and output.
// The commands that set up, check and isolate agents read all of these from the agent's [Description].
//
// Agents in other modules can use everything that the built-in ones share: [Request.Check] and [Request.Environ] for the
// invocation, [Stream], [Read], [Clip], [NewFailure] and [Tally] for the decoder. See outside_test.go for an example, and package
// agenttest for the conformance tests.
//
// A [Registry] finds agents by name. Agents are safe for concurrent use; a Decoder belongs to one process and one goroutine.
package agents

// Agent is one coding CLI.
type Agent interface {
	// Name returns the name that users write, such as "claude-code".
	Name() string
	// Describe returns the facts about the agent.
	Describe() Description
	// Invocation builds the command line, with [Request.Environ] as the environment. It fails if [Request.Check] does.
	Invocation(Request) (Invocation, error)
	// NewDecoder returns a decoder for one process.
	NewDecoder() Decoder
}

// Description has the facts about an agent that are known without a process.
type Description struct {
	// Program is the program's name in PATH. Empty: the user gives it in Options.Command.
	Program string
	// Install is the shell command that installs the program in an image with Node.js. Empty: users install it themselves.
	Install string
	Login   Login
	// Endpoint is the model service whose credential ralph can keep outside the sandbox. Nil: the agent accesses it directly.
	Endpoint *Endpoint
	Sbx      Sbx
	// Efforts and Modes are the valid values of Options.Effort and Options.PermissionMode. Empty: the agent has no such option.
	Efforts, Modes []string
	// ReadOnlyMode is the mode in which the agent reads files but changes none without asking. Empty: there is none.
	ReadOnlyMode string
	// NoUsage is set if the program's output never states token usage.
	NoUsage bool
	// NoCost is set if the program's output states tokens, but never their cost.
	NoCost bool
	// Models is set if the agent supports Options.Model.
	Models bool
	// IsSessionID reports whether an ID names a session that Invocation can resume. IDs come from an agent's output and go into an
	// argv, where a program could take other texts for a flag or a file. Nil: the agent has no sessions.
	IsSessionID func(id string) bool
	// Mail is the email address that the program adds to trailers of commits. Empty: it adds none.
	Mail string
	// Owned maps the flags that Invocation sets to the option to use instead, or to "".
	Owned map[string]string
}

// Sbx has the names for an agent in Docker Sandboxes (sbx); empty if sbx does not support it.
type Sbx struct {
	Kind    string // sandbox type whose image includes the agent, such as "claude"
	Service string // secret that its proxy adds to requests, such as "anthropic"
	Key     string // host variable that may hold the secret
	// Keys are the variables that must be set in the sandbox, to any value.
	Keys []string
}

// CanResume reports whether the agent can resume the session with this ID.
func (d Description) CanResume(id string) bool {
	return d.IsSessionID != nil && len(id) <= maxSession && d.IsSessionID(id)
}

// Options are a user's choices for an agent.
type Options struct {
	Model string // the CLI's spelling; empty: the CLI's default
	// Effort is the reasoning effort, one of Description.Efforts. Empty: the CLI's default.
	Effort string
	// PermissionMode is the CLI's own permission mode, one of Description.Modes. It replaces SkipPermissions.
	PermissionMode string
	// SkipPermissions lets the agent act without asking. Runs set it in isolating sandboxes unless PermissionMode is set.
	SkipPermissions bool
	Args            []string // extra arguments, appended unchanged
	// Env has NAME=value settings for the agent's process. They override the agent's own settings (such as its number of
	// retries) and the sandbox's environment, but not Request.Vars.
	Env     []string
	Command []string // program and arguments, for an agent without a program of its own
	// Address is the model service's address if the user has set it, without a password, and AddressFrom the name of what sets
	// it. They are for people and for parking only.
	Address, AddressFrom string
}

// Request is the input of one iteration.
type Request struct {
	Prompt  string
	Options Options
	Session string // session to resume; empty: start a new one
	// Vars are facts about the run (RALPH_ISSUE_KEY, RALPH_ISSUE_TITLE, RALPH_BRANCH, RALPH_ITERATION, …) for the environment
	// of every agent.
	Vars []string
}

// Invocation is the command line, input and environment of the program.
type Invocation struct {
	Argv  []string
	Stdin string   // the prompt; always delivered on stdin
	Env   []string // overrides the sandbox's environment; each name once
}

// Decoder decodes the output of one process. No output makes it fail: an unknown line becomes an EventUnknown. Its memory is
// bounded, whatever the output, and all texts of its events except prose are one harmless line; see [Stream].
type Decoder interface {
	// Line decodes one line of standard output, without its line end. The slice is valid only during the call.
	Line(line []byte) []Event
	// Finish returns the report on the whole stream. It is called once, last.
	Finish(Ending) Report
}

// Ending describes how the process ended.
type Ending struct {
	ExitCode   int
	Signal     string // "SIGKILL"; empty for a regular exit
	StderrTail string // the last few KiB of standard error
	StartErr   error  // the program could not be started; the other fields are zero
}
