package native

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// role is the role of a sandbox's init process.
const role = "native"

func init() { //nolint:gochecknoinits // a registration
	reexec.Register(role, func(reexec.Process) int { return supervisor.Run(runInit) })
}

// runInit is the main function of the init process: it builds the sandbox around itself, drops its privileges, and runs
// commands until ralph closes the sandbox or dies.
func runInit(conn *net.UnixConn) error {
	reexec.CatchSignals()
	runtime.LockOSThread() // this thread starts the commands, see dropPrivileges
	score := supervisor.OpenScore()
	var p plan
	given, err := supervisor.Receive(conn, &p)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	out, err := p.build(given)
	if err != nil {
		return err
	}
	if out != nil {
		defer func() { _ = out.Close() }()
		stop, err := forward.Start(forward.Config{Socket: fmt.Sprintf("/proc/self/fd/%d", out.Fd())})
		if err != nil {
			return fmt.Errorf("forward to the egress socket: %w", err)
		}
		defer stop()
	}
	c := supervisor.Config{Limit: p.PIDs, Score: score}
	if p.WatchMemory {
		c.Memory = p.Memory
	}
	if p.WatchPIDs {
		c.PIDs = p.PIDs
	}
	return supervisor.Serve(conn, c)
}

// build builds the sandbox and drops all privileges. It returns a handle of the egress socket, which no path inside leads
// to; nil without egress.
func (p *plan) build(given []*os.File) (out *os.File, err error) {
	if err := undumpable(); err != nil {
		return nil, err
	}
	if err := p.assume(); err != nil {
		return nil, err
	}
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return nil, fmt.Errorf("set the host name: %w", err)
	}
	if err := forward.LoopbackUp(); err != nil {
		return nil, err
	}
	if out, err = p.openEgress(given); err != nil {
		return nil, err
	}
	if err := makeRoot(p, given); err != nil {
		return nil, err
	}
	if err := limitSelf(p.PIDs); err != nil {
		return nil, err
	}
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("keep open files from commands: %w", err)
	}
	if err := dropPrivileges(p.memoryRules()...); err != nil {
		return nil, err
	}
	return out, undumpable() // a change of user or capabilities may have reset it
}

// undumpable prevents commands from inspecting this process.
func undumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protect the init process: %w", err)
	}
	return nil
}

// assume changes this process to the sandbox's user, if root has started it.
func (p *plan) assume() error {
	if !p.Assume {
		return nil
	}
	if err := supervisor.Assume(p.UID, p.GID); err != nil {
		return err
	}
	// The change of user has cleared the parent-death signal.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with ralph: %w", err)
	}
	return nil
}

// openEgress opens a handle of the egress socket.
func (p *plan) openEgress(given []*os.File) (*os.File, error) {
	switch {
	case p.Egress == "":
		return nil, nil //nolint:nilnil // there is no egress
	case p.EgressGiven > len(given):
		return nil, errors.New("open the egress socket: its mount is missing")
	case p.EgressGiven > 0:
		return given[p.EgressGiven-1], nil
	}
	fd, err := unix.Open(p.Egress, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the egress socket %s: %w", p.Egress, err)
	}
	return os.NewFile(uintptr(fd), p.Egress), nil
}
