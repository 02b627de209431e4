// Command inside is mounted into test containers instead of ralph's own binary. It also contains the attacks.
package main

import (
	"os"

	_ "github.com/ralph-pool/ralph/sandboxes/container" // roles of the helper
	_ "github.com/ralph-pool/ralph/sandboxes/escape"    // roles of the attacks
)

func main() { os.Exit(2) }
