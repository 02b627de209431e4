package native_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.CrashMain(native.New(native.Config{}))
	if status, inside := other(); inside {
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}
