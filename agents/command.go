package agents

import (
	"slices"
	"strings"
)

// Command runs any program as an agent: the prompt comes on its stdin, the run's facts in RALPH_* variables, and all it
// prints on stdout is its prose, one message for the whole process. The zero value is ready.
type Command struct{}

var _ Agent = Command{}

// Name returns "command".
func (Command) Name() string { return "command" }

// Describe says little: the user names the program, and it has no flags and no output that ralph knows.
func (Command) Describe() Description { return Description{NoUsage: true} }

// Invocation builds the command line. There are no sessions to resume.
func (c Command) Invocation(r Request) (Invocation, error) {
	if err := r.Check(c); err != nil {
		return Invocation{}, err
	}
	return Invocation{Argv: slices.Concat(r.Options.Command, r.Options.Args), Stdin: r.Prompt, Env: r.Environ()}, nil
}

// NewDecoder returns a decoder for one process.
func (Command) NewDecoder() Decoder { return commandDecoder{} }

type commandDecoder struct{}

// Line takes every line as prose, its line end put back.
func (commandDecoder) Line(line []byte) []Event {
	return []Event{{Kind: EventMessage, Message: "stdout", Text: strings.ToValidUTF8(string(line), "\uFFFD") + "\n"}}
}

// Finish knows only how the process ended.
func (commandDecoder) Finish(e Ending) Report {
	if e.StartErr != nil { // which names the program
		return Report{Failure: Fail(NotStarted, "%v", e.StartErr)}
	}
	s := Stream{Program: "the agent's command", Finished: true}
	return s.Report(e)
}
