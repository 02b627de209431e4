// Package seccomp is the system call filter of the sandboxes. A ralph process in the sandbox installs it on itself before it
// runs a command. The package has no state.
package seccomp
