// Package native is the sandbox provider "native": Linux namespaces built by this program, without installation or daemon.
//
// Each sandbox is one process tree with its own user, mount, pid, network, ipc, uts and cgroup namespaces. Its init process
// is this program again (packages reexec and supervisor). It builds a root with read-only system folders, an empty home,
// its own /proc, /dev and /tmp, and the worktree. Then it drops all capabilities and installs a system call filter. From
// then on it only starts and reaps commands. When it ends, the kernel kills all other processes of the sandbox; it ends
// when ralph ends, for whatever reason.
//
// On other systems the provider exists, and its Check explains why it cannot be used. A [Provider] and its sandboxes are
// safe for concurrent use.
package native

import (
	"github.com/ralph-pool/ralph/sandboxes"
)

// Config configures the provider. Its zero value is the default.
type Config struct {
	// Show lists host files and folders, beyond the system's own, that each sandbox shows read-only at the same path, such
	// as /opt. Missing ones are ignored.
	Show []string
}

var (
	_ sandboxes.Provider = (*Provider)(nil)
	_ sandboxes.Reaper   = (*Provider)(nil)
	_ sandboxes.Layerer  = (*Provider)(nil)
)

// Name returns "native".
func (*Provider) Name() string { return "native" }
