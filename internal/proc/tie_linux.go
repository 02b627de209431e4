package proc

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// setDeathSignal makes the process get SIGTERM when the starting thread dies. Run locks its thread until the process has ended.
func setDeathSignal(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// limitMemory limits the data memory of a process (RLIMIT_DATA). Read-only file mappings do not count.
func limitMemory(pid int, most uint64) error {
	err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("limit its memory: %w", err)
	}
	return nil
}
