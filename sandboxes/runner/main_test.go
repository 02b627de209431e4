package runner_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

func TestMain(m *testing.M) {
	// A native sandbox runs this program as its supervisor.
	reexec.Main()
	goleak.VerifyTestMain(m)
}
