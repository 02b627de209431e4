package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/e2e/scripted"
	"github.com/ralph-pool/ralph/internal/cli"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/pool/journal"
)

// The test binary acts as ralph and as the scripted agent, under these names in the PATH of every test.
func TestMain(m *testing.M) {
	// By default the race detector waits a second at the end of each process, which would slow the tests down.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	testscript.Main(leakFree{m}, map[string]func(){
		"ralph": func() { os.Exit(cli.Main(crashing, withNewAgent, withSpendthrift)) },
		"spendthrift": func() {
			if err := spend(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
		"scripted-agent": func() {
			os.Exit(scripted.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// crashing makes ralph kill itself when the stage in RALPH_TEST_CRASH_AT is in the journal.
func crashing(h *compose.Host) {
	h.FleetLife, _ = time.ParseDuration(os.Getenv("RALPH_TEST_FLEET_LIFE"))
	at := journal.Stage(os.Getenv("RALPH_TEST_CRASH_AT"))
	if at == "" {
		return
	}
	h.Observe = func(e journal.Event) {
		if e.Kind == journal.EventStage && e.Stage == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal arrives
		}
	}
}

// leakFree fails the tests if a goroutine outlives them.
type leakFree struct{ m *testing.M }

func (l leakFree) Run() int {
	if err := buildAgent(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// buildAgent replaces this binary by the scripted agent's own program, which starts ten times as fast. A copy of this binary
// that runs elsewhere has no source to build and keeps the slow one.
func buildAgent() error {
	const source = "./scripted/cmd"
	program, err := exec.LookPath("scripted-agent")
	if _, missing := os.Stat(source); err != nil || missing != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program+".new", source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the scripted agent: %w: %s", err, out)
	}
	return os.Rename(program+".new", program)
}
