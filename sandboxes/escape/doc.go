// Package escape attacks sandboxes. [All] lists the attacks. Each must fail inside, and must affect neither the host nor
// the next command of the sandbox. The tests of every isolating provider run them with [Run]; [Try] runs the brief ones on
// a user's machine.
//
// The attacker is this program itself, shown inside. Everything exported is safe for concurrent use, except that a [Suite] and its
// rooms belong to one goroutine.
package escape

import "runtime"

// Attack is one attack, which must fail.
type Attack struct {
	Name string // such as "files/what is shown read-only"
	// Brief attacks take a few seconds at most, and do no harm if they succeed.
	Brief bool
	// Kernel attacks need a sandbox on this host's kernel; a virtual machine has its own.
	Kernel bool
	// Make runs the attack and reports each success with Errorf.
	Make func(s *Suite)
}

// All lists the attacks on a sandbox.
func All() []Attack {
	list := append(sharedAttacks(), kernelAttacks()...)
	return list
}

// appliesTo reports whether the attack applies to the provider.
func (a Attack) appliesTo(s *Suite) bool { return !a.Kernel || runtime.GOOS == "linux" && !s.vm() }
