// Package cli is the ralph command: its flags, its configuration, its output and its exit status. It and the
// packages below it are the one place that composes the parts of ralph (package compose) and the only one that knows about
// signals, terminals and the process.
//
// One command is one package, or one file of one. A command gets everything it touches of the machine through [compose.Host], so that a test runs the
// whole program in its own process.
package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// Main runs the command in this process and returns its exit status; in a process that ralph has started for a sandbox it
// does that work instead, and exits. Each change may adapt the Host first; programs that
// are not ralph itself, such as its tests, need that.
func Main(changes ...func(*compose.Host)) int {
	reexec.Main()
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

// Run runs one command line and returns its exit status. When ctx ends it stops at once; see [compose.Host.Interrupt] for the
// gentle way. It prints its own errors. Any number of Runs may go on at a time.
func Run(ctx context.Context, args []string, h compose.Host) int {
	a := compose.New(h)
	a.Version, a.Commit = version, commit
	ctx, cancel := a.Softly(ctx)
	defer cancel()
	root := newRoot(a, args...)
	root.SetArgs(args)
	err := exit.Usagef("unknown command \"\"; `ralph help` lists the commands") // cobra drops an empty one
	if len(args) == 0 || args[0] != "" {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		err = a.UI.Failed()
	}
	return exit.Tell(a.UI, exit.ProblemOf(ctx, root, err), slices.Contains(beforeDashes(args), "--json"))
}

// beforeDashes are the arguments that can be flags.
func beforeDashes(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}
