// Command inside is what a test mounts into containers in the place of ralph's own binary.
package main

import (
	"context"
	"os"

	"github.com/ralph-pool/ralph/sandboxes/container"
)

func main() {
	os.Exit(container.Inside(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
