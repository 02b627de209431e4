// Package escape attacks sandboxes. [All] lists the attacks; each must fail inside, and neither the host nor the sandbox's
// next command may notice it. The test of every isolating provider makes them with [Run], and a user's machine is attacked
// with [Try], which makes those that are brief.
//
// The attacker is this program itself, shown inside: its main function calls reexec.Main first. Everything exported may be
// used by several goroutines, but a [Suite] and its rooms belong to one.
package escape

import "runtime"

// Attack is one thing that must not be possible.
type Attack struct {
	Name string // such as "files/what is shown read-only"
	// Brief attacks take a few seconds at most, and do no harm where they succeed.
	Brief bool
	// Kernel attacks need a sandbox on this host's kernel: a virtual machine's is its own.
	Kernel bool
	// Make makes the attack and reports, with Errorf, each success of it.
	Make func(s *Suite)
}

// All lists the attacks on a sandbox.
func All() []Attack {
	list := append(sharedAttacks(), kernelAttacks()...)
	return list
}

// concerns reports whether the attack can be made on the provider.
func (a Attack) concerns(s *Suite) bool { return !a.Kernel || runtime.GOOS == "linux" && !s.vm() }
