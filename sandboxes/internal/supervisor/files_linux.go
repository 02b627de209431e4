package supervisor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const files = 1 << 16

// LimitFiles halves the limit of open files of this process and its children. The kernel counts all descriptors in flight
// of a user, that is sent but not received, and refuses to send if the count exceeds the sender's own limit. Commands must
// therefore be unable to send as many as ralph may, or they could block every sandbox of the user. The soft limit is at
// most [files]: some programs close every possible descriptor before they start another program. A program that needs more
// can raise it.
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
