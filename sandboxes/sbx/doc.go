// Package sbx is the sandbox provider "sbx": Docker Sandboxes, with the program sbx. Each run gets a microVM with its own
// kernel.
//
// The worktree, the private repository and the object folders appear at the same paths inside. Ralph writes each command,
// with its arguments and environment, into a file of a folder that the microVM sees read-only, so that neither is on a
// command line. Root inside creates a PID namespace for the command and changes back to the sandbox's user there (scripts
// in the folder inside). When the namespace's first process ends, the kernel kills all others, so no process has to be
// searched for. Then root reports how the command ended, in a trailer of the output. Without this trailer, a command counts
// as not run.
//
// The network and the secrets are the business of sbx: its policy decides about connections, and its proxy inserts secrets
// into requests, so that the microVM holds placeholders. This has three consequences, which [Provider.Capabilities] states:
//
//   - Ralph's own egress proxy is not used. Rules of a Config apply to one sandbox, in addition to the policy of the
//     machine. They are the only rules if that is "sbx policy init deny-all".
//   - Memory and CPUs are limited by the microVM. Processes are limited for the user, but not for root inside; scratch
//     space only by the microVM.
//   - The user inside may become root there. Processes that other services start, such as the microVM's own container
//     engine, live until Close removes the microVM. Root inside can remove the .git file that ralph mounts over the
//     worktree's own. The host trusts neither: it uses its own records, and Close and Reap restore the file.
//
// This package has never been tested with a real microVM. Its tests simulate sbx 0.46 according to its documentation, with
// a microVM made of Linux namespaces; TestLive needs a real one.
package sbx
