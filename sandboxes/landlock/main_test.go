package landlock_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/landlock"
)

func TestMain(m *testing.M) {
	if status, inside := landlock.Init(os.Args); inside {
		os.Exit(status)
	}
	if status, inside := other(); inside {
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}
