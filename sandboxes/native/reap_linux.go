package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// killFirsts kills the first processes of a run's sandboxes, and waits: when one has ended, so has all in its sandbox.
func killFirsts(ctx context.Context, run string) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	var all error
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && isFirst(pid, run) {
			all = errors.Join(all, killFirst(ctx, pid, run))
		}
	}
	return all
}

// isFirst reports whether a process is the first one of a run's sandbox. Its arguments can be read by everybody and
// changed by nobody. What a command imitates inside a sandbox, it does to its own harm.
func isFirst(pid int, run string) bool {
	args := make([]byte, len(initName)+len(run)+2)
	n := readFile(procFile(pid, "cmdline"), args)
	return bytes.Equal(args[:n], []byte(initName+"\x00"+run+"\x00"))
}

func killFirst(ctx context.Context, pid int, run string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !isFirst(pid, run) { // the number was another's before the handle was ours
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("end process %d: %w", pid, context.Cause(ctx))
		}
		const patience = 50 // milliseconds, between two looks at ctx
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, patience)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for process %d: %w", pid, err)
		}
		if n > 0 {
			return nil
		}
	}
}
