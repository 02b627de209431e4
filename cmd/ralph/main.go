// Command ralph empties a backlog: see package internal/cli, and `ralph help`.
package main

import (
	"io"
	"log" //nolint:depguard // only to silence the libraries that use it
	"os"

	"github.com/ralph-pool/ralph/internal/cli"
)

func main() {
	log.SetOutput(io.Discard) // what libraries log may hold what a server has sent, unredacted
	os.Exit(cli.Main())
}
