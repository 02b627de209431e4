package supervisor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// LimitFiles lets this process and all that it starts have half as many files open. The kernel counts the descriptors that a
// user's programs have sent and nobody has received, and refuses a sender who may have fewer files open than that: what commands
// can send has to leave some for ralph, or no sandbox of the user's would open.
func LimitFiles() error {
	var now unix.Rlimit
	err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &now)
	if err == nil {
		err = unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: now.Max / 2, Max: now.Max / 2}, nil)
	}
	if err != nil {
		return fmt.Errorf("limit open files: %w", err)
	}
	return nil
}
