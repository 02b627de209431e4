// Package sbx makes sandboxes of Docker Sandboxes, by their program sbx: each run gets a microVM with a kernel of its own.
//
// The worktree, the private repository and the object folders are passed through to the same paths inside. Ralph writes
// each command, with its arguments and environment, into a file of a folder that the microVM sees read-only, so that
// neither is on a command line. Root inside gives the command a PID namespace and there becomes the sandbox's own user
// again (the files of the folder inside). When the namespace's first process ends, the kernel ends all others and only
// then says so: nothing has to be looked for. After that root says how the command ended. Without that word a command
// counts as not run.
//
// What sbx does itself stays with sbx: it lets out what its policy allows, and its proxy puts service secrets into
// requests, so that the microVM holds placeholders. Three things follow, and [Provider.Capabilities] says so:
//
//   - Ralph's own egress proxy has no part in it. Rules of a Config hold for one sandbox, over the policy of the machine:
//     only where that is "sbx policy init deny-all" are they all there is.
//   - Memory and CPUs are the microVM's. Processes are bounded for the user, not for root inside; scratch space is
//     bounded by nothing but the microVM.
//   - The user inside may become root there. What it has others start, such as the microVM's own container engine,
//     lives until Close removes the microVM; and root inside can take the .git file away that ralph puts over the
//     worktree's own. The host trusts neither: it works with its own records, and Close and Reap put the file back.
//
// Nothing of this package has met a real microVM. Its tests play sbx 0.46 by its documentation, with a microVM made of
// Linux namespaces; TestLive is for where there is a real one.
package sbx
