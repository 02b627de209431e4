// Command inside is what a test mounts into containers in the place of ralph's own binary.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/ralph-pool/ralph/sandboxes/container"
)

func main() {
	os.Exit(container.Inside(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr,
		func() { signal.Notify(make(chan os.Signal, 1)) }))
}
