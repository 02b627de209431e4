package supervisor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const files = 1 << 16

// LimitFiles lets this process and all that it starts have half as many files open. The kernel counts the descriptors that a
// user's programs have sent and nobody has received, and refuses a sender who may have fewer files open than that: what commands
// can send has to leave some for ralph, or no sandbox of the user's would open. A program that needs more than [files] has to ask for
// them: some close every descriptor that they may have before they start another program.
func LimitFiles() error {
	var now unix.Rlimit
	err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &now)
	if err == nil {
		err = unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(now.Max/2, files), Max: now.Max / 2}, nil)
	}
	if err != nil {
		return fmt.Errorf("limit open files: %w", err)
	}
	return nil
}
