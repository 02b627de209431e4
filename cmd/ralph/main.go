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
	log.SetOutput(io.Discard) // what libraries log may hold what a server has sent, unredacted
	collectLate(func() {})
	os.Exit(cli.Main())
}

// collectLate has the first garbage collection come at 16 MB and not at 4 MB, unless the user has said when. It ends there: a process that
// needs more memory takes as much as ever, and one that does not is spared several collections. ended is called then.
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
