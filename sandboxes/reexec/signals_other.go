//go:build !linux

package reexec

import (
	"os"
	"os/signal"
)

// CatchSignals makes this process survive every signal that can be caught.
func CatchSignals() { signal.Notify(make(chan os.Signal, 1)) }
