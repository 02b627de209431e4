package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
)

// What Inside is asked for.
const (
	insideStay  = "stay"  // be the container's first process: stay [SOCKET]
	insideExec  = "exec"  // start one command: exec [free]
	insideEnter = "enter" // become a command that a program of the host starts: enter ARGV…
	insideFree  = "free"  // leave system calls to the engine's own filter
	insideReady = "ready" // succeed when commands may start

	// Where files are copied.
	insideOwn    = "own"    // give folders to a user: own UID GID DIR…
	insideList   = "list"   // say what a folder holds: list ROLE DIR
	insidePack   = "pack"   // write files of a folder: pack DIR
	insideUnpack = "unpack" // take files into a folder: unpack DIR
	insideRemove = "remove" // remove files of a folder: remove DIR
	insideTunnel = "tunnel" // lead what commands send out through this call, in the place of a socket
)

// readyFile is made, inside, when commands may start.
const readyFile = "/tmp/.ralph-ready"

// Inside is what ralph's binary does inside a container. The program calls it for the hidden words of [Helper], with the
// arguments that follow them, and exits with what it returns.
//
// catch makes the process survive every signal that can be caught; signals belong to the program, not to this package.
// Nil is allowed: then a command can end its own sandbox with a signal.
func Inside(ctx context.Context, args []string, in io.Reader, out, errs io.Writer, catch func()) int {
	var err error
	switch {
	case len(args) >= 1 && len(args) <= 2 && args[0] == insideStay:
		if catch != nil {
			catch()
		}
		err = stay(ctx, args[1:])
	case len(args) == 1 && args[0] == insideExec:
		if err = filter(); err == nil {
			err = attend(in, out)
		}
	case len(args) == 2 && args[0] == insideExec && args[1] == insideFree:
		err = attend(in, out)
	case len(args) >= 2 && args[0] == insideEnter:
		if err = filter(); err == nil {
			err = enter(args[1:])
		}
	case len(args) >= 3 && args[0] == insideOwn:
		err = own(args[1:])
	case len(args) == 1 && args[0] == insideTunnel:
		err = lead(ctx, in, out)
	case len(args) == 3 && args[0] == insideList, len(args) == 2 && slices.Contains([]string{insidePack, insideUnpack, insideRemove}, args[0]):
		err = copyInside(args, in, out)
	case len(args) == 1 && args[0] == insideReady:
		_, err = os.Stat(readyFile)
	default:
		err = fmt.Errorf("these arguments are not for use by hand: %q", args)
	}
	if err != nil {
		_, _ = fmt.Fprintln(errs, "ralph inside a container:", err)
		var entry *entryError
		if errors.As(err, &entry) {
			return entry.status()
		}
		return 1
	}
	return 0
}

// entryError is why a command could not be become.
type entryError struct{ error }

func (e *entryError) Unwrap() error { return e.error }

// status is what a shell, and the engines' programs, exit with then.
func (e *entryError) status() int {
	if errors.Is(e.error, exec.ErrNotFound) || errors.Is(e.error, fs.ErrNotExist) {
		return 127
	}
	return 126
}
