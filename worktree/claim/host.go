package claim

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Process identifies a process across machines.
type Process struct {
	Host    string
	PID     int
	Started string // see [proc.Started]
}

// isHolder reports whether the holder is this process.
func (p Process) isHolder(h Holder) bool {
	return p == Process{Host: h.Host, PID: h.PID, Started: h.Started}
}

// Self describes this process. The host consists of its name and a digest of the machine ID and the PID namespace, so that
// two machines or containers with one name are told apart.
func Self() (Process, error) {
	name, err := os.Hostname()
	if err != nil {
		return Process{}, fmt.Errorf("host name: %w", err)
	}
	pid := os.Getpid()
	started, err := proc.Started(pid)
	if err != nil {
		return Process{}, fmt.Errorf("start of this process: %w", err)
	}
	return Process{Host: name + "-" + git.Digest(append([]string{name}, machineIDs()...)...), PID: pid, Started: started}, nil
}

// uptime reads a clock that all processes of this host share. Nobody can set it, and it stands still while the machine
// sleeps.
func uptime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(uptimeClock, &t) // always nil
	return time.Duration(t.Nano())
}
