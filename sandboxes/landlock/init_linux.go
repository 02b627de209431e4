package landlock

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

const (
	role        = "landlock"         // the supervisor, outside the rules
	roleCommand = "landlock-command" // the process that restricts itself and executes a command
)

func init() { //nolint:gochecknoinits // a registration
	reexec.Register(role, func(reexec.Process) int { return supervisor.Run(supervise) })
	reexec.Register(roleCommand, func(reexec.Process) int { return runRestricted() })
}

// Descriptors of a command's process before it executes the command.
const (
	orderFD   = 3
	refusalFD = 4
)

// commandOrder describes a command to its process.
type commandOrder struct {
	Plan      plan
	Argv, Env []string
	Dir       string
}

// supervise is the work of a supervisor.
func supervise(conn *net.UnixConn) error {
	// A command gets its parent-death signal when the thread that started it ends.
	runtime.LockOSThread()
	score := supervisor.OpenScore()
	var p plan
	if _, err := supervisor.Receive(conn, &p); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	c := supervisor.Config{Start: p.start, Score: score}
	if p.WatchMemory {
		c.Memory = p.Memory
	}
	if p.WatchPIDs {
		c.PIDs = p.PIDs
	}
	return supervisor.Serve(conn, c)
}

// start changes a command's start: it starts this program with an order instead.
func (p *plan) start(c *supervisor.Command) error {
	file, err := supervisor.Memory(commandOrder{Plan: *p, Argv: c.Argv, Env: append(c.Env, p.mark()), Dir: c.Dir})
	if err != nil {
		return err
	}
	c.Files = append(c.Files, file)
	refusal, refusalIn, err := os.Pipe()
	if err != nil {
		return err
	}
	c.Files, c.Refusal = append(c.Files, refusalIn), refusal
	c.Path, c.Dir = "/proc/self/exe", "/"
	c.Argv = append([]string{"ralph"}, reexec.Args(roleCommand, p.Run)...)
	c.Env = append(supervisor.Env(), p.mark())
	return nil
}

// mark is the variable by which package proc finds a run's processes. The supervisor does not have it: it must outlive its
// commands, to kill those that have removed the mark.
func (p *plan) mark() string { return "RALPH_MARK=" + p.Run }
