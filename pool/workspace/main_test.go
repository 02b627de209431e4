package workspace

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

func TestMain(m *testing.M) {
	reexec.Main()
	goleak.VerifyTestMain(m)
}
