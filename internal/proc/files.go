package proc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// OpenFiles returns the soft limit of open files of this process. The Go runtime raises it to the hard limit before main
// runs, and restores the old one in child processes.
func OpenFiles() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	return l.Cur, nil
}

// isResourceError reports whether err comes from a lack of resources here, not from the process that was inspected.
func isResourceError(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}
