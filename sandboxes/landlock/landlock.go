// Package landlock is the sandbox provider "landlock": access rules of the Linux kernel, for hosts that forbid the
// namespaces of "native". It is weaker, and is used only when it is chosen by name. Ralph composes it; agents, setup and
// gate commands run in it.
//
// Each command is started by a helper of its own, which is this program again (see [Init]). The helper stays outside the
// rules; the command, before its program begins, puts itself below three things that it and all it starts can never
// leave:
//
//   - Landlock: files can be read in the system's folders and written in the worktree, its private repository, and a
//     scratch folder that is HOME and TMPDIR; no address can be bound or connected to; no process outside gets a signal,
//     or can be looked into.
//   - A filter over system calls, that of native with more in it: what Landlock does not know about is refused, such as
//     sockets of other kinds than TCP, memory shared by System V's means, and other processes' limits.
//   - The helper's answers: calls that only a look at a path or an address can judge (chmod, utimensat, connect, bind and
//     their kin) wait for the helper, which makes them itself, on the file or socket that it has looked at, or refuses.
//
// So commands reach the egress proxy, and servers of their own on loopback, and nothing else. The helper ends all that
// comes from its command, and does so too when ralph has died. What the provider does not hold back is told by
// [Weaknesses].
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
	// Show are host files and folders, beyond the system's own, that each sandbox may read. What does not exist is left
	// out.
	Show []string
	// Path is where commands look for programs, in the places of it that a sandbox may read and not write, before the
	// system's own; empty means this process's PATH.
	Path string
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

// Capabilities says what the provider does where it works.
func (*Provider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{
		Files: sandboxes.Bind, Isolation: sandboxes.AccessRules, Egress: true, Secrets: true,
		Weaker: strings.Join(Weaknesses(), "; "),
	}
}

// Weaknesses are what the provider does not hold back, each in a few words.
func Weaknesses() []string {
	return []string{
		"names, sizes and owners of the host's files can be seen",
		"the host's process list, network interfaces and /proc can be seen",
		"the worktree's .git file can be replaced until the sandbox is closed",
		"commands have the user's own id",
		"without control groups memory and processes are limited by looking at them, and CPU is not",
		"scratch space and file watchers are not limited",
	}
}
