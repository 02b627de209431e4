// Package cli is the ralph command: its flags, its configuration, its output and its exit status. It is the one place
// that composes the parts of ralph (compose.go) and the only one that knows about signals, terminals and the process.
//
// One command is one file. A command gets everything it touches of the machine through [Host], so that a test runs the
// whole program in its own process.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
	"github.com/ralph-pool/ralph/tracker"
)

// Host is what the command sees of the process it runs in.
type Host struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string // "K=V"
	Dir            string   // working directory, absolute
	Interactive    bool     // a person at a terminal can answer on Stdin what is asked on Stderr
	// Interrupt is closed when the user asks ralph to stop. The command then ends as soon as nothing is lost.
	Interrupt <-chan struct{}
	// Hangup, once it is called, has SIGHUP no longer ask ralph to stop, but send to the channel. nil: there is no such signal.
	Hangup func() <-chan struct{}
	// Agents are the agents to choose from; nil means those that ralph knows.
	Agents []agents.Agent
	// Observe, when set, gets every event of a run at the very moment it happens. It must not block.
	Observe func(journal.Event)
	// FleetLife is how long a machine of a fleet counts as alive without a word from it; 0: the default.
	FleetLife time.Duration
	// Trackers are kinds of trackers besides the built-in ones.
	Trackers []tracker.Descriptor
}

// Main runs the command in this process and returns its exit status; in a process that ralph has started for a sandbox it
// does that work instead, and exits. Each change may adapt the Host first; programs that
// are not ralph itself, such as its tests, need that.
func Main(changes ...func(*Host)) int {
	reexec.Main()
	surviveClosedPipes()
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "ralph: working directory: %v\n", err)
		return exit.Failed
	}
	ctx, interrupt, hangup, stop := watchSignals(context.Background())
	defer stop()
	host := Host{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: os.Environ(), Dir: dir, Interrupt: interrupt, Hangup: hangup,
		Interactive: screen.IsTerminal(os.Stdin) && screen.IsTerminal(os.Stderr),
	}
	for _, change := range changes {
		change(&host)
	}
	return Run(ctx, os.Args[1:], host)
}

// Run runs one command line and returns its exit status. When ctx ends it stops at once; see Host.Interrupt for the
// gentle way. It prints its own errors. Any number of Runs may go on at a time.
func Run(ctx context.Context, args []string, h Host) int {
	a := newApp(h)
	ctx, cancel := a.softly(ctx)
	defer cancel()
	root := newRoot(a, args...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.ui.Failed()
	}
	return exit.Tell(a.ui, exit.ProblemOf(ctx, root, err), slices.Contains(beforeDashes(args), "--json"))
}

// beforeDashes are the arguments that can be flags.
func beforeDashes(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}
