package supervisor

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
)

// All processes found are killed, even if a listing fails or a process appears late.
func TestStopAndKill(t *testing.T) {
	t.Parallel()
	var found []proc.Listed
	var commands []*exec.Cmd
	looks := 0
	left, known := stopAndKill(func() ([]proc.Listed, bool) {
		if looks++; looks == 1 {
			return nil, false
		}
		if looks <= 3 {
			cmd := exec.Command("sleep", "1000")
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return nil, true
			}
			commands = append(commands, cmd)
			found = append(found, proc.Listed{PID: cmd.Process.Pid})
		}
		return found, true
	})
	if left != 2 || !known || looks != 4 {
		t.Errorf("%d were alive, %t, after %d looks", left, known, looks)
	}
	for _, cmd := range commands {
		_ = cmd.Wait() // the error only states that it was killed
		if ws, ok := cmd.ProcessState.Sys().(interface{ Signal() unix.Signal }); !ok || ws.Signal() != unix.SIGKILL {
			t.Errorf("ended by %v", cmd.ProcessState)
		}
	}
}
