// Command ralph empties a backlog: see package internal/cli, and `ralph help`.
package main

import (
	"io"
	"log" //nolint:depguard // only to silence the libraries that use it
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/ralph-pool/ralph/internal/cli"
)

func main() {
	log.SetOutput(io.Discard) // libraries may log text of a server, which is not redacted
	collectLate(func() {})
	os.Exit(cli.Main())
}

// floor is the size that the heap may reach before a collection. A collection waits for processes that are being started, and uses a
// core meanwhile.
const floor = 16 << 20

// most is the percentage of growth with which Go collects at floor if the heap is nearly empty.
const most = 100 * floor / (4 << 20)

// collectLate lets the heap grow to floor before each garbage collection, instead of to 4 MB or twice what is in use: most commands
// need no collection at all, and large ones lose nothing. It leaves a GOGC of the user alone. ended is called after each collection.
func collectLate(ended func()) {
	if os.Getenv("GOGC") == "" {
		adapt(debug.SetGCPercent(most), most, ended)
	}
}

// adapt sets the growth after each collection. usual is the least percentage, and now is the current one.
func adapt(usual, now int, ended func()) {
	runtime.AddCleanup(new([64]byte), func(now int) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		next := max(usual, min(most, 100*floor/max(1, int(live[0].Value.Uint64()))-100))
		if next == usual && now != usual || next < now*3/4 || next > now*4/3 { // each change stops all goroutines for a moment
			now = next
			debug.SetGCPercent(now)
		}
		adapt(usual, now, ended)
		ended()
	}, now)
}
