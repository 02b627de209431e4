package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/e2e/scripted"
	"github.com/ralph-pool/ralph/internal/cli"
	"github.com/ralph-pool/ralph/pool"
)

// The test binary is ralph and the scripted agent, under these names in the PATH of every test.
func TestMain(m *testing.M) {
	if status, inside := cli.SandboxInit(); inside { // this binary is ralph: it is the first process of its sandboxes too
		os.Exit(status)
	}
	// A race detector that waits a second at the end of each process would make the tests crawl.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	testscript.Main(leakFree{m}, map[string]func(){
		"ralph": func() { os.Exit(cli.Main(crashing)) },
		"scripted-agent": func() {
			os.Exit(scripted.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// crashing makes ralph kill itself where RALPH_TEST_CRASH_AT says: when this step stands in the journal.
func crashing(h *cli.Host) {
	at := pool.Step(os.Getenv("RALPH_TEST_CRASH_AT"))
	if at == "" {
		return
	}
	h.Observe = func(e pool.Event) {
		if e.Kind == pool.EventStep && e.Step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it has arrived
		}
	}
}

// leakFree fails when a goroutine outlives the tests.
type leakFree struct{ m *testing.M }

func (l leakFree) Run() int {
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
