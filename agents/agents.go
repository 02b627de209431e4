// Package agents describes coding CLIs: how one is started, how it logs in, and what its output means.
//
// An [Agent] is a codec, never a process. It builds an [Invocation] from a [Request], and its [Decoder] turns the
// lines the program prints into [Event] values and, at the end, into a [Report]. Package loop and the sandbox decide
// who runs the program, where, and with which timers.
//
// One agent is one file (and a second for a long decoder) with its program, login, model service, installation and
// output. The commands that set up, check and isolate agents read all of it from the agent's [Description].
//
// An agent of another module has all that the built-in ones share: [Request.Check] and [Request.Environ] for its invocation,
// [Stream], [Read], [Clip], [Fail] and [Tally] for its decoder. outside_test.go is one. Package agenttest is its test.
//
// Agents are values, found by name in a [Registry]. They are safe for concurrent use; a Decoder belongs to one process
// and one goroutine.
package agents

// Agent is one coding CLI.
type Agent interface {
	// Name is the name users write, such as "claude-code".
	Name() string
	// Describe returns the facts about the agent.
	Describe() Description
	// Invocation builds the command line. It fails for what [Request.Check] refuses; its environment is [Request.Environ].
	Invocation(Request) (Invocation, error)
	// NewDecoder returns a decoder for one process.
	NewDecoder() Decoder
}

// Description is the facts about an agent that need no process.
type Description struct {
	// Program is its name in PATH. Empty: the user names it in Options.Command.
	Program string
	// Install is the shell command that installs the program in an image with Node.js. Empty: users do it themselves.
	Install string
	Login   Login
	// Endpoint is the model service behind which ralph can keep the credential. Nil: the agent reaches it by itself.
	Endpoint *Endpoint
	Sbx      Sbx
	// Efforts and Modes are the values of Options.Effort and Options.PermissionMode. Empty: the agent has no such
	// option.
	Efforts, Modes []string
	// Looking is the one of Modes in which it looks at files and changes none unasked. Empty: it has none.
	Looking string
	// NoUsage means that its output never states what it used.
	NoUsage bool
	// NoCost means that its output states tokens and never what they cost.
	NoCost bool
	// Models reports that Options.Model can be chosen.
	Models bool
	// Session reports whether an id names a session that Invocation can resume. Ids come out of an agent's stream and go into
	// an argv, where a program may take other texts for a flag or a file. Nil: the agent has no sessions to resume.
	Session func(id string) bool
	// Mail is the address of the program's own name in trailers of commits. Empty: it adds none by itself.
	Mail string
	// Owned maps the flags that Invocation sets to the option to use instead, or to "".
	Owned map[string]string
}

// Sbx is how Docker Sandboxes (sbx) knows an agent; empty where it does not.
type Sbx struct {
	Kind    string // the sandbox with the agent in its image, such as "claude"
	Service string // the secret that its proxy puts into requests, such as "anthropic"
	Key     string // the host's variable that may hold the secret
	// Keys are the variables that must be set inside, to any value.
	Keys []string
}

// Resumes reports whether the agent can go on in the session with this id.
func (d Description) Resumes(id string) bool {
	return d.Session != nil && len(id) <= maxSession && d.Session(id)
}

// Options are a user's choices for an agent.
type Options struct {
	Model string // as the CLI spells it; empty leaves the choice to the CLI
	// Effort is the reasoning effort, one of Description.Efforts. Empty leaves the choice to the CLI.
	Effort string
	// PermissionMode is the CLI's own permission mode, one of Description.Modes. It replaces SkipPermissions.
	PermissionMode string
	// SkipPermissions lets the agent act without asking. In a sandbox that isolates, runs set it where there is no PermissionMode.
	SkipPermissions bool
	Args            []string // extra arguments, added as they are
	// Env is NAME=value settings for the agent's process. They win over the agent's own (such as its number of retries)
	// and over the sandbox's environment, but not over Request.Vars.
	Env     []string
	Command []string // the program and its arguments, for an agent without a program of its own
}

// Request is one iteration's work.
type Request struct {
	Prompt  string
	Options Options
	Session string // session to resume; empty starts a new one
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

// Decoder reads one process's output. Nothing a program prints makes it fail: an unknown line is an EventUnknown. What it
// keeps is bounded, whatever is printed, and all texts of its events but prose are one harmless line; see [Stream].
type Decoder interface {
	// Line decodes one line of standard output, without its end. The slice is only valid during the call.
	Line(line []byte) []Event
	// Finish returns what the whole stream means. It is called once, last.
	Finish(Ending) Report
}

// Ending is how the process ended.
type Ending struct {
	ExitCode   int
	Signal     string // "SIGKILL"; empty for a regular exit
	StderrTail string // the last few KiB of standard error
	StartErr   error  // the program could not be started; nothing else is set
}
