package supervisor

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// silent is a role that never sends anything.
const silent = "supervisor-test-silent"

func init() { //nolint:gochecknoinits // a registration
	reexec.Register(silent, func(reexec.Process) int {
		<-time.After(time.Hour) // it is killed earlier
		return 0
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHelloHasADeadline(t *testing.T) {
	t.Parallel()
	c, err := Start(Process{Role: silent, Run: "hello", Dies: true})
	if err != nil {
		t.Fatal(err)
	}
	c.hello = 50 * time.Millisecond
	if err := c.Open(t.Context(), struct{}{}, nil, Commands{}); err == nil || !strings.Contains(err.Error(), "does not answer after 50ms") {
		t.Errorf("Open gives %v", err)
	}
	if err := c.Kill(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if err := c.process.Signal(os.Interrupt); err == nil {
		t.Error("its process is alive")
	}
}
