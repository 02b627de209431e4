package worktree

import (
	"fmt"
	"os"

	"github.com/ralph-pool/ralph/internal/proc"
)

// self is this process as others see it in a claim.
type self struct {
	host    string
	pid     int
	started string
}

// is reports whether the holder is this very process.
func (s self) is(h Holder) bool { return h.Host == s.host && h.PID == s.pid && h.Started == s.started }

// identify finds out who this process is. The host is its name and a digest of what is unique to the machine and to
// the process numbers in use: two machines or containers of one name are not taken for each other, because the PID of
// one means nothing on the other.
func identify() (self, error) {
	name, err := os.Hostname()
	if err != nil {
		return self{}, fmt.Errorf("host name: %w", err)
	}
	pid := os.Getpid()
	started, err := proc.Started(pid)
	if err != nil {
		return self{}, fmt.Errorf("start of this process: %w", err)
	}
	return self{host: name + "-" + digest(append([]string{name}, machine()...)...), pid: pid, started: started}, nil
}
