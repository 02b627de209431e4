// Package container contains the sandbox providers "docker" and "podman", and supports other programs with the same command
// line. It uses the programs of the engines and none of their libraries, so that contexts, rootless setups and remote
// daemons work as the user has configured them.
//
// Each run has one container. By default it is hardened: no capabilities, no new privileges, a read-only root, no network
// except ralph's egress proxy, limits on memory, CPUs and processes, and no root user. Ralph's own program is mounted
// read-only, and does inside what engines do not (package inside):
//
//   - It is the container's first process, copies the home that setup has filled, and forwards the commands' connections to the
//     egress proxy.
//   - It reads each command from its standard input and starts it, so that no argument or variable is on a command line or in
//     the output of "docker inspect", and all bytes arrive unchanged.
//   - It adopts the processes that the command leaves behind, kills them, and then reports how the command ended. Only this
//     report counts, not the exit status of the engine's client.
//
// The egress proxy is reached over a unix socket, which does not work across a virtual machine's file sharing: with Docker
// Desktop and podman machine, a sandbox with egress needs a Disk. gVisor shows host sockets only with --host-uds=open.
//
// With a [sandboxes.Disk] nothing of the host is mounted, so the engine may be on another machine: folders are volumes of
// the engine, and an additional exec carries the connections to the proxy.
//
// A command that kills its helper ends its own sandbox: without a report the container is killed.
package container
