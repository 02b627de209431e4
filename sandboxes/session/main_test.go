package session_test

import (
	"os"
	"os/signal"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/native"
)

func TestMain(m *testing.M) {
	// A native sandbox starts with this program.
	if status, inside := native.Init(os.Args, func() { signal.Notify(make(chan os.Signal, 1)) }); inside {
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}
