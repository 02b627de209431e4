package container

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
)

// What Inside is asked for.
const (
	insideStay  = "stay"  // be the container's first process: stay [SOCKET]
	insideExec  = "exec"  // start one command
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
func Inside(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	var err error
	switch {
	case len(args) >= 1 && len(args) <= 2 && args[0] == insideStay:
		err = stay(ctx, args[1:])
	case len(args) == 1 && args[0] == insideExec:
		err = attend(in, out)
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
		return 1
	}
	return 0
}
