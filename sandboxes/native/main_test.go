package native_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// withoutMain is set in the environment of a program that forgets to call reexec.Main.
const withoutMain = "NATIVE_TEST_WITHOUT_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(withoutMain) == "" {
		reexec.Main()
	}
	if status, inside := other(); inside {
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}
