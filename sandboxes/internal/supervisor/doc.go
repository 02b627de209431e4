// Package supervisor runs the commands of one sandbox. The providers native and landlock use it, and parts of it also run
// in containers.
//
// On the host's side a [Client] starts this program again as the sandbox's supervisor, sends it a plan, and asks it to run
// commands. In that process, [Run] and [Serve] start the commands, reap all processes of the sandbox, and kill everything
// that a command leaves behind. Both sides talk over a socket pair that no command can reach.
//
// A Client is safe for concurrent use. The package supports Linux only.
package supervisor
