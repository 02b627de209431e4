package sandboxes_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes"
)

// crashing is the variable with the run id for which the test binary, started as a program of its own, runs a command until
// it is killed.
const crashing = "SANDBOXES_TEST_CRASH"

func TestMain(m *testing.M) {
	if run := os.Getenv(crashing); run != "" {
		os.Exit(untilKilled(run))
	}
	goleak.VerifyTestMain(m)
}

// untilKilled runs a command that outlives this program.
func untilKilled(run string) int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	box, err := sandboxes.NewNone(sandboxes.NoneConfig{}).Open(ctx, sandboxes.Spec{Run: run, Worktree: dir})
	if err == nil {
		_, err = box.Exec(ctx, sandboxes.Command{
			Argv: []string{"sh", "-c", "echo $$ >pid.new && mv pid.new pid && exec 9>life && echo ready >&9 && exec sleep 100"},
		})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
