// Command ralph empties a backlog: see package internal/cli, and `ralph help`.
package main

import (
	"os"

	"github.com/ralph-pool/ralph/internal/cli"
)

func main() { os.Exit(cli.Main()) }
