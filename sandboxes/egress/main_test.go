package egress_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// insideVariable makes the test binary simulate a sandbox: see inside_linux_test.go.
const insideVariable = "EGRESS_TEST_INSIDE"

func TestMain(m *testing.M) {
	if socket := os.Getenv(insideVariable); socket != "" {
		os.Exit(inside(socket, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}
