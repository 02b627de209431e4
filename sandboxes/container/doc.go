// Package container makes sandboxes of containers: the providers "docker" and "podman", and any program that speaks as
// they do. It drives their command lines, and no library of theirs, so that contexts, rootless set-ups and remote
// daemons work as their users have set them up.
//
// One container is one run. It is hardened by default: no capabilities, no new privileges, a read-only root, no network
// but ralph's egress proxy, bounds on memory, CPUs and processes, and never root. Ralph's own binary is shown inside,
// read-only, and does there what no engine does (see [Inside]):
//
//   - It is the container's first process, and leads what commands send out to the egress proxy.
//   - It starts each command, and is told over its standard input which one, so that no argument and no variable is
//     on a command line or in what "docker inspect" prints, and so that bytes arrive unchanged.
//   - It adopts whatever the command leaves behind, ends all of it, and then reports how the command ended. What the
//     engine's client returns is never taken for the command's: only that report is.
//
// The egress proxy is reached over a unix socket, which crosses no virtual machine's file sharing: with Docker Desktop and
// podman machine a sandbox with egress does not open where files are mounted. gVisor shows host sockets only with its flag
// --host-uds=open.
//
// With [sandboxes.Copy] nothing of the host is mounted, so that the engine can be anywhere: folders are volumes, which a
// container without any other task fills; files go in before each command and come out after it (package mirror); the
// private repository is mounted as the worktree's .git, so that it can be neither removed nor replaced; and the proxy is
// reached through one more exec. What comes out is believed in nothing. It is not given up, either: a container whose files
// cannot be had stays.
//
// A command that kills this helper ends its own sandbox: without a report the container is removed.
package container
