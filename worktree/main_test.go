package worktree

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
)

// TestMain isolates the tests from the user's configuration. The test binary also serves as a second ralph process; see
// stress_test.go.
func TestMain(m *testing.M) {
	gittest.Isolate()
	if job := os.Getenv(stressEnv); job != "" {
		if err := stressChild(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
