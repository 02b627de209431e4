package compose

import (
	"cmp"
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

// Host is the process and the machine as a command sees them.
type Host struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string // "K=V"
	Dir            string   // working directory, absolute
	Interactive    bool     // a person at a terminal can answer on Stdin questions on Stderr
	// Interrupt is closed when the user asks ralph to stop. The command then ends as soon as no work is lost.
	Interrupt <-chan struct{}
	// Hangup turns SIGHUP from a request to stop into a send on the returned channel. nil: there is no such signal.
	Hangup func() <-chan struct{}
	// Agents are the known agents; nil means the built-in ones.
	Agents []agents.Agent
	// Observe, if set, gets every event of a run at once. It must not block.
	Observe func(journal.Event)
	// FleetLife is how long a machine of a fleet counts as alive without a heartbeat; 0: the default.
	FleetLife time.Duration
	// Patience is how long a remote may be silent until a command says that it waits; 0: the default.
	Patience time.Duration
	// Service is the address of this machine's service; empty: the default.
	Service string
	// Trackers are additional kinds of trackers.
	Trackers []tracker.Descriptor
}

// Getenv looks up a variable of the host's environment. Of several with the same name the last one counts.
func (h Host) Getenv(name string) string { return config.Getenv(h.Env, name) }

// ReadInput reads standard input, at most so many bytes (0: no limit). The end of ctx makes it return, but not the read itself.
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

// Foreground runs a program that uses the terminal.
func (a *App) Foreground(env []string, argv ...string) error {
	ended, err := proc.Foreground(a.Hard, proc.Spec{
		Argv: argv, Dir: a.Host.Dir, Env: env, Stdin: a.Host.Stdin, Stdout: a.Host.Stdout, Stderr: a.Host.Stderr,
	})
	if err == nil && ended.Code != 0 && ended.Signal != syscall.SIGPIPE { // a user who quits a pager closes its pipe
		err = fmt.Errorf("%s ended with status %d", argv[0], ended.Code)
	}
	return err
}

// Browse prints an address, and opens it in a browser if standard output is a terminal. It always prints, because it cannot tell
// whether a browser shows anything.
func (a *App) Browse(address string) {
	a.UI.Printf("%s\n", screen.CleanLine(address))
	if !screen.IsTerminal(a.Host.Stdout) || !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return
	}
	usual := "xdg-open"
	if runtime.GOOS == "darwin" {
		usual = "open"
	}
	browser := cmp.Or(a.Host.Getenv("BROWSER"), usual)
	_, _ = proc.Foreground(a.Hard, proc.Spec{Argv: []string{browser, address}, Dir: a.Host.Dir, Env: a.Host.Env})
}
