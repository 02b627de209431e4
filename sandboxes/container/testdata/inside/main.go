// Command inside is what a test mounts into containers in the place of ralph's own binary. It is the attacker there, too.
package main

import (
	"os"

	_ "github.com/ralph-pool/ralph/sandboxes/container" // the roles inside
	_ "github.com/ralph-pool/ralph/sandboxes/escape"    // the attacks' roles
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

func main() {
	reexec.Main()
	os.Exit(2)
}
