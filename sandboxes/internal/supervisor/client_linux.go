package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

const (
	// helloLimit is the maximum time from the start of the process to its hello.
	helloLimit = 15 * time.Second
	// openLimit is the maximum time for opening a sandbox, which usually takes some 10 ms.
	openLimit = 30 * time.Second
	// answerLimit is the time for taking a message, or for ending, after which the supervisor is killed.
	answerLimit = 30 * time.Second
)

// Process describes how to start a supervisor.
type Process struct {
	Role, Run string // Role is registered with package reexec; the run's id is its only argument
	// Namespaces are the clone flags of its own namespaces, in which it has the capabilities Caps.
	Namespaces uintptr
	Caps       []uintptr
	// Dies makes the kernel kill the supervisor when this process dies. Otherwise the supervisor outlives this process, so
	// that it can kill what it has started.
	Dies bool
}

// Commands holds the settings of all commands of a sandbox.
type Commands struct {
	Dir      string
	Env      []string
	Own      bool // chown a command's pipes to UID and GID, so that it can open /dev/stdout
	UID, GID int
}

// Client is the host's side of one supervisor. It is safe for concurrent use.
type Client struct {
	process       *os.Process
	conn          *net.UnixConn
	stderr        *proc.Tail       // the supervisor's output when it crashes
	processEnded  chan struct{}    // closed when the process has ended
	exit          *os.ProcessState // how the process ended; valid once processEnded is closed
	eventsEnded   chan struct{}    // closed when no more events will arrive
	gracefulClose bool             // Close gives the supervisor time to end by itself
	hello         time.Duration    // maximum time until its hello
	defaults      Commands
	commands      sandboxes.Commands

	mu           sync.Mutex
	noMoreEvents bool                // guarded by mu; no more events will arrive
	next         uint64              // guarded by mu
	pendingByID  map[uint64]*pending // guarded by mu
	killed       map[string]int      // guarded by mu; processes killed at a limit, by cause
}

// pending is a command that has not ended yet.
type pending struct {
	end   event
	ended chan error // receives nil when end is set, or the reason why it never will be
}

// Start starts a supervisor, which then waits for its plan.
func Start(p Process) (*Client, error) {
	conn, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	stderr, stderrIn, err := os.Pipe()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	defer func() { _ = stderrIn.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_, _ = conn.Close(), stderr.Close()
		return nil, err
	}
	defer func() { _ = null.Close() }()

	c := &Client{
		conn:          conn,
		stderr:        proc.NewTail(4 << 10),
		processEnded:  make(chan struct{}),
		eventsEnded:   make(chan struct{}),
		gracefulClose: !p.Dies,
		hello:         helloLimit,
		pendingByID:   make(map[uint64]*pending),
		killed:        make(map[string]int),
	}
	started := make(chan error, 1)
	go c.guard(stderr, started, func() (*os.Process, error) { return p.start(null, null, stderrIn, theirs) })
	if err := <-started; err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// start starts the process directly: package proc does not support namespaces.
func (p Process) start(files ...*os.File) (*os.Process, error) {
	attr := &syscall.SysProcAttr{Setsid: true, AmbientCaps: p.Caps}
	if p.Dies {
		attr.Pdeathsig = unix.SIGKILL
	}
	if p.Namespaces != 0 {
		// Without these flags Go would copy the memory of this process, which is slow, and the copy would keep all files of
		// this process open for a while.
		attr.Cloneflags = p.Namespaces | unix.CLONE_VM | unix.CLONE_VFORK
	}
	argv := append([]string{"ralph"}, reexec.Args(p.Role, p.Run)...)
	return os.StartProcess("/proc/self/exe", argv, &os.ProcAttr{Dir: "/", Env: Env(), Files: files, Sys: attr})
}

// Env returns the environment of a supervisor. Go crashes if it needs a new thread while a command has filled the process
// table. With GOMAXPROCS=2 the threads exist before.
func Env() []string { return []string{"GOMAXPROCS=2", "GOTRACEBACK=none"} }

// guard starts the process and waits for it on one locked thread: the parent-death signal is sent when the starting thread
// ends.
func (c *Client) guard(stderr *os.File, started chan<- error, start func() (*os.Process, error)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := start()
	if err != nil {
		_ = stderr.Close()
		started <- err
		return
	}
	c.process = p
	started <- nil
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.CopyBuffer(c.stderr, struct{ io.Reader }{stderr}, make([]byte, 512)) })
	c.exit, _ = p.Wait()
	_, _ = c.conn.CloseRead(), c.conn.CloseWrite() // the last events, such as a failure, can still be read
	reading.Wait()                                 // nobody else holds the write end
	_ = stderr.Close()
	close(c.processEnded)
}

// PID returns the supervisor's process id.
func (c *Client) PID() int { return c.process.Pid }

// Ended reports whether the supervisor has ended. Its process id may then be reused.
func (c *Client) Ended() bool {
	select {
	case <-c.processEnded:
		return true
	default:
		return false
	}
}

// Open sends the supervisor its plan and files, and waits until commands can run. After an error the caller must call Kill.
func (c *Client) Open(ctx context.Context, plan any, files []*os.File, commands Commands) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openLimit, fmt.Errorf("it is not ready after %s", openLimit))
	defer cancel()
	hello, cancelHello := context.WithTimeoutCause(ctx, c.hello,
		fmt.Errorf("its first process does not answer after %s", c.hello))
	defer cancelHello()
	if err := c.expect(hello, kindHello); err != nil {
		return err
	}
	if err := send(c.conn, plan, files...); err != nil {
		return c.killAndExplain(fmt.Errorf("send the plan: %w", err))
	}
	if err := c.expect(ctx, kindReady); err != nil {
		return err
	}
	c.defaults = commands
	go c.listen()
	return nil
}

// expect waits for the next event, which must be of the given kind.
func (c *Client) expect(ctx context.Context, kind string) error {
	stop := context.AfterFunc(ctx, func() { _ = c.process.Kill() })
	defer stop()
	e, err := c.readEvent(make([]byte, maxEvent))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return c.killAndExplain(err)
	case e.Kind == kind:
		return nil
	case e.Kind == kindFailed:
		return errors.New(e.Error)
	}
	return fmt.Errorf("its first process says %q instead of %q", e.Kind, kind)
}

// readEvent reads the next event.
func (c *Client) readEvent(buf []byte) (event, error) {
	n, err := c.conn.Read(buf)
	if err != nil {
		return event{}, err
	}
	return decodeEvent(buf[:n])
}

// killAndExplain kills the supervisor, and adds its last output to an error.
func (c *Client) killAndExplain(err error) error {
	_ = c.process.Kill()
	<-c.processEnded
	if line := c.crashOutput(); line != "" {
		return fmt.Errorf("its first process ended (%s): %w", line, err)
	}
	return fmt.Errorf("its first process ended: %w", err)
}

// crashOutput returns the first line of the output of a crashed supervisor.
func (c *Client) crashOutput() string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.stderr.String()), "\n")
	return line
}

// Kill kills the supervisor and waits for its end.
func (c *Client) Kill(ctx context.Context) error {
	_ = c.process.Kill() // it may have ended already
	select {
	case <-c.processEnded:
		_ = c.conn.Close()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the supervisor and everything that it has started, and waits for the Execs to return. It may be called again
// if ctx ends first.
func (c *Client) Close(ctx context.Context) error {
	_, err := c.commands.Close(ctx, func(ctx context.Context) error {
		if c.gracefulClose {
			_ = c.conn.CloseWrite() // asks the supervisor to kill what it has started and to end
			select {
			case <-c.processEnded:
			case <-time.After(answerLimit):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := c.Kill(ctx); err != nil {
			return err
		}
		<-c.eventsEnded
		return nil
	})
	return err
}

// Notices reports how many processes were killed at the limits. oom is the kernel's own count for memory; unless it is 0,
// it takes precedence. It also reports that the process limit was reached if there were most processes at the same time.
func (c *Client) Notices(memory int64, pids, oom, most int) (list []sandboxes.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if oom = cmp.Or(oom, c.killed[causeMemory]); oom > 0 {
		list = append(list, sandboxes.MemoryNotice(oom, memory))
	}
	if n := c.killed[causePIDs]; n > 0 {
		list = append(list, sandboxes.PIDsNotice(n, pids))
	} else if most >= pids && pids > 0 {
		list = append(list, sandboxes.PIDsReached(pids))
	}
	return list
}
