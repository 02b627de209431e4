// Package container makes sandboxes of containers: the providers "docker" and "podman", and any program with the same
// command line. It drives their programs, and no library of theirs, so that contexts, rootless set-ups and remote
// daemons work as their users have set them up.
//
// One container is one run. It is hardened by default: no capabilities, no new privileges, a read-only root, no network
// but ralph's egress proxy, limits on memory, CPUs and processes, and never root. Ralph's own program is shown inside,
// read-only, and does there what no engine does (package inside):
//
//   - It is the container's first process, copies the home that setup has filled, and forwards the commands' connections to the
//     egress proxy.
//   - It starts each command, which it reads from its standard input, so that no argument and no variable is on a command
//     line or in the output of "docker inspect", and so that bytes arrive unchanged.
//   - It adopts the processes that the command leaves behind, ends all of them, and then reports how the command ended. Only
//     that report counts, and not the exit status of the engine's client.
//
// The egress proxy is reached over a unix socket, which does not cross a virtual machine's file sharing: with Docker Desktop
// and podman machine a sandbox with egress needs a Disk. gVisor shows host sockets only with its flag --host-uds=open.
//
// With a [sandboxes.Disk] nothing of the host is mounted, so that the engine can be anywhere: folders are volumes of the
// engine, and the proxy is reached through one more exec.
//
// A command that kills its helper ends its own sandbox: without a report the container is killed.
package container
