// Package native is the sandbox provider "native": Linux namespaces, built by ralph's own program, with nothing to
// install and no daemon. Ralph composes it; agents, setup and gate commands run in it.
//
// Each sandbox is one process tree in user, mount, pid, network, ipc and uts namespaces of its own. Its first process is
// this program again (see [Init]): it makes a root of read-only system folders, an empty home, its own /proc, /dev and
// /tmp, and the worktree; gives up every capability; puts a filter over system calls; and from then on only starts and
// reaps what the host side asks for over a socket that no command can reach. When it ends the kernel ends all the rest,
// and it ends when ralph does, however that happens.
//
// On systems other than Linux the provider exists and its Check says why it cannot be used. A [Provider] and its
// sandboxes are safe for concurrent use.
package native

import (
	"github.com/ralph-pool/ralph/sandboxes"
)

// Config configures the provider. Its zero value is the default.
type Config struct {
	// Show are host files and folders, beyond the system's own, that each sandbox sees read-only at the same path, such
	// as /opt. What does not exist is left out.
	Show []string
	// Path is where commands look for programs, in the places of it that a sandbox shows read-only, before the system's
	// own; empty means this process's PATH.
	Path string
}

var (
	_ sandboxes.Provider = (*Provider)(nil)
	_ sandboxes.Reaper   = (*Provider)(nil)
)

// Name is "native".
func (*Provider) Name() string { return "native" }

// Enforcement says how each limit is held on this host; "" means that it is not.
type Enforcement struct {
	Memory, CPUs, PIDs, Disk string
}
