package native_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// withoutMain is set in the environment of a program that does not call reexec.Main.
const withoutMain = "NATIVE_TEST_WITHOUT_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(withoutMain) == "" {
		reexec.Main()
	}
	sandboxtest.CrashMain(native.New(native.Config{}))
	if status, inside := other(); inside {
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}
