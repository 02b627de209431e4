// Package reexec starts this program again for work that needs a process of its own inside a sandbox, such as a
// sandbox's init process. The provider packages register such roles; a program that opens sandboxes calls [Main] before
// anything else. Register is for package initialization; all the rest may be called by several goroutines.
package reexec

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
)

// word is the first argument of a process that serves a role. The second is the role, the role's own arguments follow.
const word = "in-sandbox"

// ErrNoMain is returned where a role cannot be started because this program has not called Main: a second copy of the
// program's own work would run in its place.
var ErrNoMain = errors.New("the sandbox starts this program again, so its main function has to call reexec.Main first")

// Process is what a role's process was started with.
type Process struct {
	Args           []string // the role's own
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

var (
	roles  = map[string]func(Process) (status int){} //nolint:gochecknoglobals // written during initialization only
	called atomic.Bool                               //nolint:gochecknoglobals // a fact about this process
)

// Register adds a role. It panics when the role is taken, which is a mistake in the program.
func Register(role string, run func(Process) (status int)) {
	if roles[role] != nil {
		panic("reexec: two roles are named " + role)
	}
	roles[role] = run
}

// Main serves the role that this process was started for, and exits. In every other process it returns at once. A main
// function calls it first, so that the role is served before the program does any work.
func Main() {
	if status, inside := serve(os.Args); inside {
		os.Exit(status) //nolint:forbidigo // this is the main function of a process of its own
	}
	called.Store(true)
}

// serve runs the role that the arguments name.
func serve(args []string) (status int, inside bool) {
	if len(args) < 3 || args[1] != word || roles[args[2]] == nil {
		return 0, false
	}
	return roles[args[2]](Process{args[3:], os.Stdin, os.Stdout, os.Stderr}), true
}

// Check returns ErrNoMain when this program has not called Main. A provider calls it before it starts a role.
func Check() error {
	if !called.Load() {
		return ErrNoMain
	}
	return nil
}

// Args are the arguments, after the program's name, that make a process serve the role.
func Args(role string, args ...string) []string { return append([]string{word, role}, args...) }
