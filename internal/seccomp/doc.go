// Package seccomp is the system call filter of the sandboxes. A process of the program installs it on itself, inside a
// sandbox, before a command runs. It holds no state.
package seccomp
