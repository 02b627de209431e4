package container

import (
	"context"
	"fmt"
	"io"
	"os"
)

// What Inside is asked for.
const (
	insideStay  = "stay"  // be the container's first process: stay [SOCKET]
	insideExec  = "exec"  // start one command
	insideReady = "ready" // succeed when commands may start
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
