package landlock

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/seccomp"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// runRestricted restricts this process and executes the command. It returns only on failure.
func runRestricted() (status int) {
	runtime.LockOSThread() // this thread becomes the command, and per-thread state of the kernel applies to it
	refusal := os.NewFile(refusalFD, "refusal")
	var o commandOrder
	err := supervisor.Decode(os.NewFile(orderFD, "order"), &o)
	if err == nil {
		err = o.exec()
	}
	_ = supervisor.Refuse(refusal, err) // there is no other place to report an error of Refuse
	return 1
}

func (o *commandOrder) exec() error {
	p := &o.Plan
	if err := cgroup.Enter(p.Groups, os.Getpid()); err != nil {
		return err
	}
	if err := p.limit(); err != nil {
		return err
	}
	if err := p.dropPrivileges(); err != nil {
		return err
	}
	// Only now: a change of user clears the parent-death signal.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the supervisor: %w", err)
	}
	if err := p.restrict(); err != nil {
		return err
	}
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep open files from the command: %w", err)
	}
	if err := os.Chdir(o.Dir); err != nil {
		return fmt.Errorf("its folder: %w", err)
	}
	path, err := proc.Lookup(o.Argv[0], o.Dir, o.Env)
	if err != nil {
		return err
	}
	if err := seccomp.Install(filterRules()...); err != nil {
		return err
	}
	err = unix.Exec(path, o.Argv, o.Env)
	if _, statErr := os.Stat(path); errors.Is(err, unix.EACCES) && statErr == nil {
		return fmt.Errorf("%s: it is not executable, or in no folder that the sandbox shows: %w", path, err)
	}
	return proc.Explain(err, path, o.Dir)
}

// limit sets the resource limits that the command and its children inherit.
func (p *plan) limit() error {
	for _, l := range []struct {
		name  string
		which int
		to    uint64
	}{
		// 1, not 0: with 0 the kernel still runs the host's crash handler, if configured, as root.
		{"core dumps", unix.RLIMIT_CORE, 1},
		{"the size of files", unix.RLIMIT_FSIZE, uint64(p.Disk)},
		// The kernel also counts the user's processes outside the sandbox.
		{"processes", unix.RLIMIT_NPROC, uint64(proc.Tasks(p.UID) + p.PIDs)},
	} {
		var now unix.Rlimit
		err := unix.Prlimit(0, l.which, nil, &now)
		if err == nil {
			to := min(l.to, now.Max)
			err = unix.Prlimit(0, l.which, &unix.Rlimit{Cur: to, Max: to}, nil)
		}
		if err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
	}
	return supervisor.LimitFiles()
}

// dropPrivileges drops all capabilities permanently. If root started this process, it changes to the plan's user.
func (p *plan) dropPrivileges() error {
	if err := supervisor.DropBounding(p.Assume); err != nil {
		return err
	}
	if p.Assume {
		if err := supervisor.Assume(p.UID, p.GID); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil // restrict prevents new privileges
}
