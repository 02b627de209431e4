// Package reexec starts this program again for work that needs its own process inside a sandbox, such as a sandbox's init
// process. The provider packages register such roles. Register may be called only during package initialization; everything
// else is safe for concurrent use.
package reexec

import (
	"io"
	"os"
)

// roleArg is the first argument of a process with a role. The role's name and its arguments follow.
const roleArg = "in-sandbox"

// Process is the environment of a role's process.
type Process struct {
	Args           []string // the role's arguments
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

var registered = map[string]bool{} //nolint:gochecknoglobals // written during initialization only

// Register adds a role. If it is the role of this process, Register runs it and exits: the program's other packages, hundreds
// of them, are not initialised, which takes longer than opening a sandbox. Go initialises a package as soon as what it imports
// is, in the order of the import paths, so a package with a role should import little. Register panics if the role exists,
// which is a programming error.
func Register(role string, run func(Process) (status int)) {
	if registered[role] {
		panic("reexec: two roles are named " + role)
	}
	registered[role] = true
	if args := os.Args; len(args) >= 3 && args[1] == roleArg && args[2] == role {
		os.Exit(run(Process{args[3:], os.Stdin, os.Stdout, os.Stderr})) //nolint:forbidigo // this is the main function of a process of its own
	}
}

// Args returns the arguments, after the program's name, of a process with the role.
func Args(role string, args ...string) []string { return append([]string{roleArg, role}, args...) }
