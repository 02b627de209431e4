// Package inside is the part of ralph that runs in a container: its first process, the helper that runs one command, and
// the container's end of the egress tunnel. Package container starts each of them with ralph's own program, through Main.
//
// The helper and ralph exchange frames over the helper's standard input and output. Ralph sends the command in a frame, so
// that no argument or variable is on a command line. The helper reports how the command ended, so that the exit status of
// the engine's client does not matter. Each role runs in its own process.
package inside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// Roles, the first argument of Main.
const (
	Init   = "init"   // the container's first process: init [home DIR] [SOCKET|tunnel]
	Exec   = "exec"   // run one command: exec [unfiltered]
	Enter  = "enter"  // execute a command that a host program starts: enter ARGV…
	Ready  = "ready"  // wait until commands may start, at most some seconds
	Own    = "own"    // change the owner of folders: own UID GID DIR…
	Tunnel = "tunnel" // forward connections to the egress proxy over this call, instead of a socket

	Unfiltered = "unfiltered" // rely on the engine's own system call filter
	Home       = "home"       // copy HomeLayer to a folder, before commands may start
)

// HomeLayer is the path of the home that setup has filled, read-only.
const HomeLayer = "/.ralph/home"

// TunnelReady is the line of error output after which commands may start.
const TunnelReady = "ralph inside a container: the tunnel is ready"

// readyFile is created when commands may start, unless there is a tunnel.
const readyFile = "/tmp/.ralph-ready"

// Main serves one role and returns the exit status.
func Main(p reexec.Process) int {
	err := serve(p)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(p.Stderr, "ralph inside a container:", err)
	switch _, entry := errors.AsType[*entryError](err); {
	case !entry:
		return 1
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist): // the exit statuses of shells and of the engines' programs
		return 127
	}
	return 126
}

func serve(p reexec.Process) error {
	ctx := context.Background()
	role, rest := "", []string(nil)
	if len(p.Args) > 0 {
		role, rest = p.Args[0], p.Args[1:]
	}
	switch {
	case role == Init && len(rest) <= 3:
		reexec.CatchSignals()
		return runInit(ctx, rest)
	case role == Exec && len(rest) == 0:
		if err := filter(); err != nil {
			return err
		}
		return runCommand(p.Stdin, p.Stdout)
	case role == Exec && len(rest) == 1 && rest[0] == Unfiltered:
		return runCommand(p.Stdin, p.Stdout)
	case role == Enter && len(rest) > 0:
		if err := filter(); err != nil {
			return err
		}
		return enter(rest)
	case role == Own && len(rest) >= 2:
		return chownFolders(rest)
	case role == Tunnel && len(rest) == 0:
		return tunnel(ctx, p.Stdin, p.Stdout, p.Stderr)
	case role == Ready && len(rest) == 0:
		return awaitReady(ctx)
	}
	return fmt.Errorf("these arguments are not for use by hand: %q", p.Args)
}

// awaitReady polls inside the container, because each call of an engine costs more than all polls.
func awaitReady(ctx context.Context) error {
	const limit, pause = 10 * time.Second, 5 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if _, err := os.Stat(readyFile); err == nil {
			return nil
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// entryError is the reason why Enter could not execute its command.
type entryError struct{ error }

func (e *entryError) Unwrap() error { return e.error }
