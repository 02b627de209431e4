package agents

import "strings"

// Command runs any program as an agent: the prompt comes on its stdin, the run's facts in RALPH_* variables, and all it
// prints on stdout is its prose, one message for the whole process. The zero value is ready.
type Command struct{}

var _ Agent = Command{}

// Name returns "command".
func (Command) Name() string { return "command" }

// Check wants a program and refuses what a program of an unknown kind has no flags for.
func (c Command) Check(o Options) error {
	const mend = "put it into --agent-command"
	if len(o.Command) == 0 || o.Command[0] == "" {
		return flaw(c.Name(), "no program; set --agent-command 'PROGRAM ARG…'")
	}
	for _, arg := range o.Command {
		if strings.ContainsRune(arg, 0) {
			return flaw(c.Name(), "--agent-command %q: an argument cannot contain a NUL byte", clip(arg, 60))
		}
	}
	if err := checkUnused(c.Name(), "--model", o.Model, mend); err != nil {
		return err
	}
	if err := checkUnused(c.Name(), "--effort", o.Effort, mend); err != nil {
		return err
	}
	if err := checkUnused(c.Name(), "--permission-mode", o.PermissionMode, mend); err != nil {
		return err
	}
	if err := checkArgs(c.Name(), o.Args, nil); err != nil {
		return err
	}
	return checkEnv(c.Name(), o.Env)
}

// Invocation builds the command line. A program of an unknown kind has no sessions, so there is none to resume.
func (c Command) Invocation(r Request) (Invocation, error) {
	if err := c.Check(r.Options); err != nil {
		return Invocation{}, err
	}
	if r.Session != "" || r.Fork {
		return Invocation{}, flaw(c.Name(), "sessions are not supported; start afresh")
	}
	argv := append([]string(nil), r.Options.Command...)
	return Invocation{
		Argv:  append(argv, r.Options.Args...),
		Stdin: r.Prompt,
		Env:   environ(r.Options.Env, facts(r.Vars)),
	}, nil
}

// NewDecoder returns a decoder for one process.
func (Command) NewDecoder() Decoder { return &commandDecoder{} }

type commandDecoder struct{}

// Line takes every line as prose, its line end put back.
func (*commandDecoder) Line(line []byte) []Event {
	return []Event{{Kind: EventMessage, Message: "stdout", Text: strings.ToValidUTF8(string(line), "\uFFFD") + "\n"}}
}

// Finish knows nothing but how the process ended.
func (*commandDecoder) Finish(e Ending) Report {
	const program = "the agent command"
	if e.StartErr != nil {
		return Report{Failure: fail(NotStarted, "%v; check --agent-command", e.StartErr)}
	}
	if f := killed(program, "", e); f != nil {
		return Report{Failure: f}
	}
	if e.ExitCode != 0 {
		return Report{Failure: exited(program, e)}
	}
	return Report{}
}
