package agents

import (
	"slices"
	"strings"
)

// Command runs any program as an agent: it gets the prompt on stdin and the run's facts in RALPH_* variables. All its output on
// stdout is prose, one message for the whole process. The zero value is ready for use.
type Command struct{}

var _ Agent = Command{}

// Name returns "command".
func (Command) Name() string { return "command" }

// Describe has few facts: the user names the program, and ralph knows neither its flags nor its output.
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

// Line returns every line as prose, with its line end restored.
func (commandDecoder) Line(line []byte) []Event {
	return []Event{{Kind: EventMessage, Message: "stdout", Text: strings.ToValidUTF8(string(line), "\uFFFD") + "\n"}}
}

// Finish reports only how the process ended.
func (commandDecoder) Finish(e Ending) Report {
	if e.StartErr != nil { // the error names the program
		return Report{Failure: NewFailure(NotStarted, "%v", e.StartErr)}
	}
	s := Stream{Program: "the agent's command", Finished: true}
	return s.Report(e)
}
