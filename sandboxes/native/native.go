// Package native is the sandbox provider "native": Linux namespaces, built by the program itself, with nothing to install
// and no daemon. Ralph composes it; agents, setup and gate commands run in it.
//
// Each sandbox is one process tree in user, mount, pid, network, ipc and uts namespaces of its own. Its init process is
// this program again (packages reexec and supervisor). It makes a root of read-only system folders, an empty home, its own
// /proc, /dev and /tmp, and the worktree; it gives up every capability and filters system calls; from then on it only
// starts and reaps commands. When it ends, the kernel kills all other processes of the sandbox, and it ends when ralph
// does, however that happens.
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
	// as /opt. Those that do not exist are left out.
	Show []string
}

var (
	_ sandboxes.Provider = (*Provider)(nil)
	_ sandboxes.Reaper   = (*Provider)(nil)
	_ sandboxes.Layerer  = (*Provider)(nil)
)

// Name is "native".
func (*Provider) Name() string { return "native" }
