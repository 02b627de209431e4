package native

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// initName is the first argument, in the place of the program's name, of a sandbox's first process. The second is the
// run's id: by these two a crashed ralph's sandboxes are found, and a person sees in ps what they are.
const initName = "ralph-sandbox"

// prepare is the third argument while the sandbox is being built.
const prepare = "prepare"

// Descriptors of the first process.
const (
	channelFD = 3
	planFD    = 4
	egressFD  = 5 // the egress socket's place in the file system; only with egress
)

// Init makes this process the first one of a sandbox when it was started to be that, and then returns only when the
// sandbox ends: inside is true and the program must exit with the status. In every other process it returns at once.
// A program that opens sandboxes calls it, with os.Args, before anything else.
//
// catch makes the process survive every signal that can be caught; signals belong to the program, not to this package.
// Nil is allowed: then a command can end its own sandbox with a signal.
func Init(args []string, catch func()) (status int, inside bool) {
	if len(args) < 2 || args[0] != initName {
		return 0, false
	}
	conn, err := connect(os.NewFile(channelFD, "channel"))
	if err != nil {
		return 1, true // there is nobody to tell: ralph did not start this
	}
	if len(args) == 3 && args[2] == prepare {
		err = build(conn)
	} else {
		if catch != nil {
			catch()
		}
		err = live(conn)
	}
	if err != nil {
		_ = send(conn, event{Kind: kindFailed, Error: err.Error()})
		return 1, true
	}
	return 0, true
}

// build makes the sandbox around this process, gives up what that needed, and starts the program anew, so that no
// thread of it is left that was more powerful. It returns only with an error.
func build(conn *net.UnixConn) error {
	// Descriptors are used by their numbers here. The collector, which closes files that nothing refers to any more,
	// must not run before the program starts anew.
	debug.SetGCPercent(-1)
	runtime.LockOSThread() // the last steps are for one thread, which alone survives them
	var p plan
	files, err := receive(conn, &p)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the first process: %w", err)
	}
	if err := p.assume(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	if p.Egress != "" {
		if err := keepEgress(&p, files); err != nil {
			return err
		}
	}
	if err := makeRoot(&p, files); err != nil {
		return err
	}
	if err := keepPlan(&p); err != nil {
		return err
	}
	if err := limitSelf(p.PIDs); err != nil {
		return err
	}
	file, err := conn.File() // a copy that blocks, which the connection did not
	if err != nil {
		return err
	}
	if err := keep(int(file.Fd()), channelFD); err != nil {
		return err
	}
	if err := unix.CloseRange(egressFD+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close what the sandbox must not keep: %w", err)
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	err = unix.Exec("/proc/self/exe", []string{initName, p.Run}, firstEnv())
	return fmt.Errorf("start the first process: %w", err)
}

// firstEnv is the environment of the first process. Few threads are enough for it.
func firstEnv() []string { return []string{"GOMAXPROCS=2", "GOTRACEBACK=none"} }

// keepEgress keeps the way to the egress socket, which is not shown inside.
func keepEgress(p *plan, given []*os.File) error {
	if p.EgressGiven > 0 {
		if p.EgressGiven > len(given) {
			return errors.New("open the egress socket: its mount is missing")
		}
		return keep(int(given[p.EgressGiven-1].Fd()), egressFD)
	}
	fd, err := unix.Open(p.Egress, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the egress socket %s: %w", p.Egress, err)
	}
	return keep(fd, egressFD)
}

// keepPlan leaves the plan to the program's next start.
func keepPlan(p *plan) error {
	packet, err := encode(p)
	if err != nil {
		return err
	}
	file, err := memory(packet[1:])
	if err != nil {
		return err
	}
	return keep(int(file.Fd()), planFD)
}

// keep gives a file a number that survives the program's next start.
func keep(fd, as int) error {
	if err := unix.Dup3(fd, as, 0); err != nil {
		return fmt.Errorf("keep descriptor %d: %w", as, err)
	}
	return nil
}

// live is the sandbox's life: the first process without any privilege. It ends with the conversation.
func live(conn *net.UnixConn) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the first process: %w", err)
	}
	for fd := range egressFD + 1 {
		unix.CloseOnExec(fd)
	}
	var p plan
	file := os.NewFile(planFD, "plan")
	err := gob.NewDecoder(io.NewSectionReader(file, 0, maxMessage)).Decode(&p)
	_ = file.Close()
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	s := newServer(conn, &p)
	if p.Egress != "" {
		stop, err := forward(egressPath)
		if err != nil {
			return fmt.Errorf("forward to the egress socket: %w", err)
		}
		defer stop()
	}
	if err := s.say(event{Kind: kindReady}); err != nil {
		return err
	}
	err = s.serve()
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET) {
		return nil // ralph has closed the sandbox, or is no more
	}
	return err
}
