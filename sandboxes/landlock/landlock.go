// Package landlock is the sandbox provider "landlock": access rules of the Linux kernel, for hosts that forbid the
// namespaces of "native". It is weaker, and is used only when it is chosen by name. Ralph composes it; agents, setup and
// gate commands run in it.
//
// Each sandbox has a supervisor, which is this program again (packages reexec and supervisor) and stays outside the rules.
// For each command it starts one more process of this program, which restricts itself for good and then becomes the
// command:
//
//   - Landlock: files can be read in the system's folders and written in the worktree, its private repository, and a
//     scratch folder that is HOME and TMPDIR; TCP connects only to the port numbers of the egress proxy; no process
//     outside gets a signal or can be looked into.
//   - A filter over system calls, for what Landlock does not know: unix and UDP sockets, listening, shared memory of
//     System V, limits of other processes.
//   - Control groups, where this process may make them, and otherwise resource limits and a watch in the supervisor.
//
// The supervisor kills everything that its commands have started, and does so too when ralph has died.
//
// Landlock judges paths and ports, and nothing judges in its place what it does not look at. So these weaknesses are part
// of the provider; [Weaknesses] lists them, and the escape suite expects each attack on them to succeed:
//
//   - A port number is allowed, not an address: a command can connect to any host that listens at the proxy's port number,
//     which changes with each sandbox. An attacker with a server that listens at all ports can get data out.
//   - chmod, chown, utimensat and inotify_add_watch are not judged: a command can change the permissions and times of every
//     file of its user, and watch what happens to files and folders. It cannot read or write them.
//   - Names, /proc, the network interfaces and the user id are the host's.
//
// On the other hand no command can start a server, not even on loopback: a rule for it would open all those ports outside.
//
// On systems other than Linux the provider exists and its Check says why it cannot be used. A [Provider] and its
// sandboxes are safe for concurrent use.
package landlock

import (
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Config configures the provider. Its zero value is the default.
type Config struct {
	// Show are host files and folders, beyond the system's own, that each sandbox may read. Those that do not exist are
	// left out.
	Show []string
	// Scratch is the folder in which each sandbox gets its HOME and TMPDIR, and Reap finds what a crash has left. It is
	// made where it is missing; empty means os.TempDir.
	Scratch string
}

var (
	_ sandboxes.Provider = (*Provider)(nil)
	_ sandboxes.Reaper   = (*Provider)(nil)
)

// Name is "landlock".
func (*Provider) Name() string { return "landlock" }

// Capabilities are those of a host where the provider works.
func (*Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{
		Files: sandboxes.Bind, Isolation: sandboxes.AccessRules, Egress: true, Secrets: true,
		Weaker: strings.Join(Weaknesses(), "; "),
	}
}

// Weaknesses are what the provider does not prevent, each in a few words.
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
