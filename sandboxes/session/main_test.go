package session_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

func TestMain(m *testing.M) {
	// A native sandbox starts with this program.
	reexec.Main()
	goleak.VerifyTestMain(m)
}
