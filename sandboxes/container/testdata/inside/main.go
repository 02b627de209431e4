// Command inside is what a test mounts into containers in the place of ralph's own binary. It is the attacker there, too.
package main

import (
	"os"

	"github.com/ralph-pool/ralph/sandboxes/container/inside"
	_ "github.com/ralph-pool/ralph/sandboxes/escape" // the attacks' roles
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

func main() {
	reexec.Main()
	os.Exit(inside.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, reexec.CatchSignals))
}
