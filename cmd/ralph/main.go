// Command ralph empties a backlog: see package internal/cli, and `ralph help`.
package main

import (
	"io"
	"log" //nolint:depguard // only to silence the libraries that use it
	"os"
	"runtime"
	"runtime/debug"

	"github.com/ralph-pool/ralph/internal/cli"
)

func main() {
	log.SetOutput(io.Discard) // libraries may log text of a server, which is not redacted
	collectLate(func() {})
	os.Exit(cli.Main())
}

// collectLate delays the first garbage collection from a heap of 4 MB to 16 MB, and then restores the usual setting: most commands
// need no collection at all, and large ones lose nothing. It leaves a GOGC of the user alone. ended is called after that collection.
func collectLate(ended func()) {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(400)
	runtime.AddCleanup(new([64]byte), func(usual int) {
		debug.SetGCPercent(usual)
		ended()
	}, usual)
}
