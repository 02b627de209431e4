package proc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// OpenFiles is how many files this process may have open. The Go runtime raises the soft limit to the hard one before
// main runs, and restores the old soft limit in child processes.
func OpenFiles() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	return l.Cur, nil
}

// exhausted reports that this process, not the one looked at, is the reason.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}
