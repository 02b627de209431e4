package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// killInits kills the init processes of a run's sandboxes and waits for their end, which is the end of the whole sandbox.
func killInits(ctx context.Context, run string) error {
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
		if pid, err := strconv.Atoi(name); err == nil && isInitProcess(pid, run) {
			all = errors.Join(all, killInit(ctx, pid, run))
		}
	}
	return all
}

// isInitProcess reports whether a process is the init process of a run's sandbox. Every user can read its arguments, and nobody
// can change them. A command inside a sandbox that imitates them harms only itself.
func isInitProcess(pid int, run string) bool {
	args, _ := os.ReadFile(procFile(pid, "cmdline"))
	_, ours, _ := bytes.Cut(args, []byte{0}) // without the program's name
	return string(ours) == strings.Join(append(reexec.Args(role, run), ""), "\x00")
}

func killInit(ctx context.Context, pid int, run string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !isInitProcess(pid, run) { // the PID was reused before the pidfd was opened
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("end process %d: %w", pid, context.Cause(ctx))
		}
		const patience = 50 // milliseconds between two checks of ctx
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, patience)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for process %d: %w", pid, err)
		}
		if n > 0 {
			return nil
		}
	}
}
