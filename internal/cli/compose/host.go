package compose

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/journal"
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
	// Service is where the service of this machine listens; empty: where it usually does.
	Service string
	// Trackers are kinds of trackers besides the built-in ones.
	Trackers []tracker.Descriptor
}

// Getenv looks a variable up in the host's environment; the last of several wins.
func (h Host) Getenv(name string) string { return config.Getenv(h.Env, name) }

// ReadInput reads standard input to its end, at most so many bytes (0: any number), or until ctx ends: a read from a terminal cannot
// be called off, so it ends with the process then.
func (a *App) ReadInput(ctx context.Context, most int64) ([]byte, error) {
	in := a.Host.Stdin
	if most > 0 {
		in = io.LimitReader(in, most)
	}
	read := make(chan struct{})
	var all []byte
	var failed error
	go func() {
		defer close(read)
		all, failed = io.ReadAll(in)
	}()
	select {
	case <-read:
		return all, failed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Foreground runs a program that talks to the person at the terminal.
func (a *App) Foreground(env []string, argv ...string) error {
	ended, err := proc.Foreground(a.Hard, proc.Spec{
		Argv: argv, Dir: a.Host.Dir, Env: env, Stdin: a.Host.Stdin, Stdout: a.Host.Stdout, Stderr: a.Host.Stderr,
	})
	if err == nil && ended.Code != 0 && ended.Signal != syscall.SIGPIPE { // who leaves a pager has seen enough
		err = fmt.Errorf("%s ended with status %d", argv[0], ended.Code)
	}
	return err
}

// Browse prints an address, and opens it where a person has a browser for it. It is printed all the same: whether a browser
// shows anything cannot be told.
func (a *App) Browse(address string) {
	a.UI.Printf("%s\n", screen.CleanLine(address))
	if !screen.IsTerminal(a.Host.Stdout) || !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return
	}
	browser := a.Host.Getenv("BROWSER")
	if browser == "" {
		if browser = "xdg-open"; runtime.GOOS == "darwin" {
			browser = "open"
		}
	}
	_, _ = proc.Foreground(a.Hard, proc.Spec{Argv: []string{browser, address}, Dir: a.Host.Dir, Env: a.Host.Env})
}
