// Package reexec starts this program again for work that needs its own process inside a sandbox, such as a sandbox's init
// process. The provider packages register such roles, and a program that opens sandboxes calls [Main] before anything else.
// Register may be called only during package initialization; everything else is safe for concurrent use.
package reexec

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
)

// roleArg is the first argument of a process with a role. The role's name and its arguments follow.
const roleArg = "in-sandbox"

// ErrNoMain means that a role cannot be started because this program has not called Main: the new process would run the
// program itself instead.
var ErrNoMain = errors.New("the sandbox starts this program again, so its main function has to call reexec.Main first")

// Process is the environment of a role's process.
type Process struct {
	Args           []string // the role's arguments
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

var (
	roles      = map[string]func(Process) (status int){} //nolint:gochecknoglobals // written during initialization only
	mainCalled atomic.Bool                               //nolint:gochecknoglobals // a fact about this process
)

// Register adds a role. It panics if the role exists, which is a programming error.
func Register(role string, run func(Process) (status int)) {
	if roles[role] != nil {
		panic("reexec: two roles are named " + role)
	}
	roles[role] = run
}

// Main runs the role of this process, and exits. In a process without a role it returns at once. A main function must call
// it before it does anything else.
func Main() {
	if status, inside := serve(os.Args); inside {
		os.Exit(status) //nolint:forbidigo // this is the main function of a process of its own
	}
	mainCalled.Store(true)
}

// serve runs the role that the arguments name. inside is false if they name none.
func serve(args []string) (status int, inside bool) {
	if len(args) < 3 || args[1] != roleArg || roles[args[2]] == nil {
		return 0, false
	}
	return roles[args[2]](Process{args[3:], os.Stdin, os.Stdout, os.Stderr}), true
}

// Check returns ErrNoMain if this program has not called Main. Providers call it before they start a role.
func Check() error {
	if !mainCalled.Load() {
		return ErrNoMain
	}
	return nil
}

// Args returns the arguments, after the program's name, of a process with the role.
func Args(role string, args ...string) []string { return append([]string{roleArg, role}, args...) }
