// Package scripted is the scripted agent: a program that replaces a coding agent in tests. It performs the actions in a
// [Script] for the current issue and iteration, and performs them for real: it edits files, runs commands and commits with git
// in the current worktree. It also misbehaves on demand: it hangs, ignores signals, leaves processes behind and prints garbage.
//
// Ralph's agent "command" starts it, with the prompt on stdin and the facts in RALPH_* variables. The demo and the
// end-to-end tests use it. Main starts no goroutine that outlives it.
package scripted

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// NoIssue is the script's key for runs without an issue, such as `ralph run`.
const NoIssue = "no-issue"

// maxPrompt is the maximum number of bytes read of the prompt.
const maxPrompt = 64 << 20

// Main runs the agent and returns its exit status: that of the script, 1 if an action fails, 2 for wrong usage. args do not
// include the program's name.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("scripted-agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("script", "", "`file` that says what to do (required)")
	log := flags.String("log", "", "`file` that gets one line a start")
	by := flags.String("by", "iteration", "choose the script's entry by `what`: "+
		"iteration (of the run) or start (of the issue, counted in --log)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := checkFlags(*file, *log, *by, flags.Args()); err != nil {
		fmt.Fprintln(stderr, "scripted-agent:", err)
		return 2
	}
	f, err := os.Open(*file)
	if err != nil {
		fmt.Fprintln(stderr, "scripted-agent:", err)
		return 2
	}
	script, err := Parse(f)
	f.Close()
	if err != nil {
		fmt.Fprintf(stderr, "scripted-agent: %s: %v\n", *file, err)
		return 2
	}
	a := &agent{stdout: stdout, stderr: stderr}
	if err := a.start(stdin, *log, *by); err != nil {
		fmt.Fprintln(stderr, "scripted-agent:", err)
		return 1
	}
	fmt.Fprintf(stdout, "scripted agent (no model behind it): issue %s, iteration %d\n", a.facts.Key, a.facts.Iteration)
	var exit exitError
	switch err := a.play(script.actions(a.facts.Key, a.entry)); {
	case errors.As(err, &exit):
		return int(exit)
	case err != nil:
		fmt.Fprintln(stderr, "scripted-agent:", err)
		return 1
	}
	return 0
}

func checkFlags(file, log, by string, rest []string) error {
	switch {
	case file == "":
		return errors.New("--script FILE is required")
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case by != "iteration" && by != "start":
		return fmt.Errorf("--by %s: want iteration or start", by)
	case by == "start" && log == "":
		return errors.New("--by start needs --log FILE")
	}
	return nil
}

// agent is one process of the program.
type agent struct {
	stdout, stderr io.Writer
	prompt         string
	facts          Start
	entry          int // number of the issue's entry to play, from 1
	locked         []*os.File
}

// start reads the prompt and the facts, and appends to the log.
func (a *agent) start(stdin io.Reader, log, by string) error {
	prompt, err := io.ReadAll(io.LimitReader(stdin, maxPrompt))
	if err != nil {
		return fmt.Errorf("read the prompt: %w", err)
	}
	a.prompt = string(prompt)
	a.facts = Start{Key: os.Getenv("RALPH_ISSUE_KEY"), PID: os.Getpid(), Branch: os.Getenv("RALPH_BRANCH"), Iteration: 1}
	if a.facts.Key == "" {
		a.facts.Key = NoIssue
	}
	if s := os.Getenv("RALPH_ITERATION"); s != "" {
		if a.facts.Iteration, err = strconv.Atoi(s); err != nil || a.facts.Iteration < 1 {
			return fmt.Errorf("RALPH_ITERATION is %q: want a number from 1", s)
		}
	}
	a.entry = a.facts.Iteration
	if log == "" {
		return nil
	}
	if err := appendStart(log, a.facts); err != nil {
		return err
	}
	if by == "start" {
		starts, err := ReadLog(log)
		if err != nil {
			return err
		}
		a.entry = 0
		for _, s := range starts {
			if s.Key == a.facts.Key {
				a.entry++
			}
		}
	}
	return nil
}

// expand replaces the placeholders in a text.
func (a *agent) expand(text string) string {
	return strings.NewReplacer(
		"{{key}}", a.facts.Key, "{{title}}", os.Getenv("RALPH_ISSUE_TITLE"), "{{branch}}", a.facts.Branch,
		"{{iteration}}", strconv.Itoa(a.facts.Iteration), "{{pid}}", strconv.Itoa(a.facts.PID),
	).Replace(text)
}

// exitError ends the program with this status.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
