// Package supervisor runs the commands of one sandbox. The providers native and landlock use it, and parts of it run in a
// container, too.
//
// A [Client], on the host's side, starts this program again as the sandbox's supervisor, gives it a plan, and asks it to
// run commands. In that process, [Run] and [Serve] start them, reap all processes of the sandbox, and kill everything
// that a command leaves behind. Both sides talk over a pair of sockets that no command can reach.
//
// A Client is safe for concurrent use. The package works on Linux only.
package supervisor
