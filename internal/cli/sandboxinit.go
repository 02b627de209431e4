package cli

import (
	"context"
	"os"
	"os/signal"

	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// SandboxInit does the work of this program inside a sandbox when it was started there; it must then exit with the
// status. Main calls it before anything else.
func SandboxInit() (status int, inside bool) {
	// What is caught and read by nobody does nothing: no command inside can end the sandbox with a signal.
	catch := func() { signal.Notify(make(chan os.Signal, 1)) }
	if len(os.Args) > 2 && os.Args[1] == insideWord {
		return container.Inside(context.Background(), os.Args[2:], os.Stdin, os.Stdout, os.Stderr, catch), true
	}
	if status, inside = landlock.Init(os.Args); inside {
		return status, true
	}
	return native.Init(os.Args, catch)
}
