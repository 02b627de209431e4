// Command cmd is the scripted agent as a program.
package main

import (
	"os"

	"github.com/ralph-pool/ralph/e2e/scripted"
)

func main() { os.Exit(scripted.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
