package landlock_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// wanted is the pattern of requested tests, which the ordinary user runs.
var wanted string

func TestMain(m *testing.M) {
	sandboxtest.CrashMain(landlock.New(landlock.Config{}))
	if status, inside := other(); inside {
		os.Exit(status)
	}
	flag.Parse()
	if run := flag.Lookup("test.run").Value; os.Getuid() == 0 { // commands cannot run as root: an ordinary user runs the other tests
		wanted = run.String()
		_ = run.Set("^(TestAsOrdinaryUser|TestCommandsAreTheWorktreesOwner|TestControlGroupsHoldLimits|TestProcessLimitIsNoticed|TestRootIsRefused)$")
	}
	goleak.VerifyTestMain(m)
}
