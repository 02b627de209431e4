// Package cli is the ralph program: command line, configuration, output and exit status. This package and those below it are
// the only ones that know about signals, terminals and the process.
//
// Each command is a package below this one, or a file of such a package; constructors in root.go lists them. A command reaches
// the machine through [compose.Host] only, so a test can run the whole program in its own process. Package compose builds the
// parts of ralph from the configuration.
package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/proc"
)

// Main runs the command line of this process and returns its exit status. Each change may adapt the Host first, for programs
// that embed ralph, such as its tests.
func Main(changes ...func(*compose.Host)) int {
	if err := enoughTasks(); err != nil {
		fmt.Fprintln(os.Stderr, "ralph:", err)
		return exit.Usage
	}
	surviveClosedPipes()
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "ralph: working directory: %v\n", err)
		return exit.Failed
	}
	ctx, interrupt, hangup, stop := watchSignals(context.Background())
	defer stop()
	host := compose.Host{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: os.Environ(), Dir: dir, Interrupt: interrupt, Hangup: hangup,
		Interactive: screen.IsTerminal(os.Stdin) && screen.IsTerminal(os.Stderr),
	}
	for _, change := range changes {
		change(&host)
	}
	return Run(ctx, os.Args[1:], host)
}

// enoughTasks fails if this process cannot start its threads. Go would end it, with a trace of its stacks. The tasks of the user are
// counted only under a limit so low that a few of them matter.
func enoughTasks() error {
	const few, needed = 128, 10
	most, limited := proc.MaxTasks()
	if !limited || most >= few {
		return nil
	}
	if free, _ := proc.FreeTasks(); free < needed {
		return fmt.Errorf("at least %d more processes and threads are needed, but the limit of your user (%d) allows %d; "+
			"end some, or allow more with: ulimit -u", needed, most, free)
	}
	return nil
}

// Run runs one command line, prints its errors and returns its exit status. The end of ctx stops it at once;
// [compose.Host.Interrupt] stops it gently. It is safe for concurrent use.
func Run(ctx context.Context, args []string, h compose.Host) int {
	a := compose.New(h)
	a.Version, a.Commit = version, commit
	ctx, cancel := a.Softly(ctx)
	defer cancel()
	root := newRoot(a, args...)
	root.SetArgs(args)
	err := exit.Usagef("unknown command \"\"; `ralph help` lists the commands") // cobra drops an empty argument
	if len(args) == 0 || args[0] != "" {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		err = a.UI.Failed()
	}
	return exit.Tell(a.UI, exit.ProblemOf(ctx, root, err), slices.Contains(beforeDashes(args), "--json"))
}

// beforeDashes returns the arguments before "--", which may be flags.
func beforeDashes(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}
