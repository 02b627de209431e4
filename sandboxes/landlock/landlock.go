// Package landlock is the sandbox provider "landlock": access rules of the Linux kernel, for hosts that forbid the
// namespaces of "native". It is weaker, and is used only when a user names it.
//
// Each sandbox has a supervisor, which is this program again (packages reexec and supervisor) and is not restricted. For
// each command the supervisor starts another process of this program, which restricts itself permanently and then executes
// the command:
//
//   - Landlock: files can be read in the system's folders and written in the worktree, its private repository, and a
//     scratch folder that is HOME and TMPDIR; TCP connects only to the port numbers of the egress proxy; processes
//     outside cannot be signalled or traced.
//   - A system call filter, for what Landlock does not check: unix and UDP sockets, listening, shared memory of
//     System V, limits of other processes.
//   - Control groups where this process can create them, and otherwise resource limits and polling by the supervisor.
//
// The supervisor kills everything that its commands have started, also after ralph has died.
//
// Landlock checks paths and ports, and nothing replaces it where it checks nothing. The resulting weaknesses are part of
// the provider: [Weaknesses] lists them, and the escape suite expects each attack on them to succeed:
//
//   - Landlock allows a port number, not an address: a command can connect to any host that listens on the proxy's port
//     number, which changes with each sandbox. An attacker whose server listens on all ports can get data out.
//   - chmod, chown, utimensat and inotify_add_watch are not checked: a command can change the permissions and times of every
//     file of its user, and watch files and folders. It cannot read or write them.
//   - Names, /proc, the network interfaces and the user id are the host's.
//
// On the other hand no command can start a server, not even on loopback: a rule for it would open the same ports outside.
//
// On other systems the provider exists, and its Check explains why it cannot be used. A [Provider] and its sandboxes are
// safe for concurrent use.
package landlock

import (
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Config configures the provider. Its zero value is the default.
type Config struct {
	// Show lists host files and folders, beyond the system's own, that each sandbox can read. Missing ones are ignored.
	Show []string
	// Scratch is the folder in which each sandbox gets its HOME and TMPDIR, and in which Reap searches after a crash. It is
	// created if missing; empty means os.TempDir.
	Scratch string
}

var (
	_ sandboxes.Provider = (*Provider)(nil)
	_ sandboxes.Reaper   = (*Provider)(nil)
)

// Name returns "landlock".
func (*Provider) Name() string { return "landlock" }

// Capabilities returns those on a host where the provider works.
func (*Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{
		Files: sandboxes.Bind, Isolation: sandboxes.AccessRules, Egress: true, Secrets: true,
		Weaker: strings.Join(Weaknesses(), "; "),
	}
}

// Weaknesses returns what the provider does not prevent, each in a few words.
func Weaknesses() []string {
	return []string{
		"commands can connect to any host that listens at the port number of the egress proxy",
		"permissions and times of the user's files can be changed",
		"names, sizes and owners of the host's files can be seen, and changes to them watched",
		"the host's process list, network interfaces and /proc can be seen",
		"the worktree's .git file can be replaced until the sandbox is closed",
		"commands have the user's own id",
		"without control groups memory and processes are limited by watching them, and CPU is not",
		"scratch space and file watchers are not limited",
	}
}
