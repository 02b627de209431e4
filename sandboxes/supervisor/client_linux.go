package supervisor

import (
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
	// helloLimit is how long the program may take to serve its role.
	helloLimit = 15 * time.Second
	// openLimit is how long a sandbox may take to open. It usually takes hundredths of a second.
	openLimit = 30 * time.Second
	// answerLimit is how long the supervisor may need to take a message, or to end, before it is killed.
	answerLimit = 30 * time.Second
)

// Process says how a supervisor is started.
type Process struct {
	Role, Run string // the role is registered with package reexec; the run's id is its one argument
	// Namespaces are clone flags for namespaces of its own, over which it gets the capabilities Caps.
	Namespaces uintptr
	Caps       []uintptr
	// Dies makes the kernel kill the supervisor when this process ends. Without it the supervisor outlives this process,
	// to kill what it has started.
	Dies bool
}

// Commands is what all commands of a sandbox have in common.
type Commands struct {
	Dir      string
	Env      []string
	Own      bool // the pipes of a command are given to UID and GID, so that it can open /dev/stdout
	UID, GID int
}

// Client is the host's side of one supervisor.
type Client struct {
	process  *os.Process
	conn     *net.UnixConn
	stderr   *proc.Tail       // what the supervisor writes when it crashes
	gone     chan struct{}    // closed when its process has ended
	exit     *os.ProcessState // how, once gone is closed
	heard    chan struct{}    // closed when it will say no more
	patient  bool             // it is given time to end by itself
	hello    time.Duration    // how long it may take to serve its role
	common   Commands
	commands sandboxes.Commands

	mu      sync.Mutex
	over    bool                // guarded by mu; it will say no more
	next    uint64              // guarded by mu
	waiting map[uint64]*pending // guarded by mu
	killed  map[string]int      // guarded by mu; processes killed by a limit, by its cause
}

// pending is a command whose end is not known yet.
type pending struct {
	end   event
	ended chan error // gets why there will be no end, or nil once there is one
}

// Start starts a supervisor, which waits for its plan.
func Start(p Process) (*Client, error) {
	if err := reexec.Check(); err != nil {
		return nil, err
	}
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
		conn:    conn,
		stderr:  proc.NewTail(4 << 10),
		gone:    make(chan struct{}),
		heard:   make(chan struct{}),
		patient: !p.Dies,
		hello:   helloLimit,
		waiting: make(map[uint64]*pending),
		killed:  make(map[string]int),
	}
	started := make(chan error, 1)
	go c.guard(stderr, started, func() (*os.Process, error) { return p.start(null, null, stderrIn, theirs) })
	if err := <-started; err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// start starts the process. It is the one that ralph does not start through package proc, which knows no namespaces.
func (p Process) start(files ...*os.File) (*os.Process, error) {
	attr := &syscall.SysProcAttr{Setsid: true, AmbientCaps: p.Caps}
	if p.Dies {
		attr.Pdeathsig = unix.SIGKILL
	}
	if p.Namespaces != 0 {
		// With these flags Go would copy the memory of this process, which takes time, and would for a while hold open all
		// files that are open here.
		attr.Cloneflags = p.Namespaces | unix.CLONE_VM | unix.CLONE_VFORK
	}
	argv := append([]string{"ralph"}, reexec.Args(p.Role, p.Run)...)
	return os.StartProcess("/proc/self/exe", argv, &os.ProcAttr{Dir: "/", Env: Env(), Files: files, Sys: attr})
}

// Env is the environment of a supervisor. Go may need a thread at the moment at which a command has filled the process table,
// and ends without it: with two that run Go they are there before.
func Env() []string { return []string{"GOMAXPROCS=2", "GOTRACEBACK=none"} }

// guard starts the process and waits for it, on one thread: the kernel kills the process when the thread that started it
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
	reading.Go(func() { _, _ = io.Copy(c.stderr, stderr) })
	c.exit, _ = p.Wait()
	_, _ = c.conn.CloseRead(), c.conn.CloseWrite() // what it has said last, such as why it failed, can still be read
	reading.Wait()                                 // nobody else holds the other end
	_ = stderr.Close()
	close(c.gone)
}

// PID is the supervisor's process id.
func (c *Client) PID() int { return c.process.Pid }

// Ended reports that the supervisor has ended. Its process id may be another process's then.
func (c *Client) Ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Open gives the supervisor its plan, with files, and waits until commands can run. After an error the caller calls Kill.
func (c *Client) Open(ctx context.Context, plan any, files []*os.File, commands Commands) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openLimit, fmt.Errorf("it is not ready after %s", openLimit))
	defer cancel()
	hello, cancelHello := context.WithTimeoutCause(ctx, c.hello,
		fmt.Errorf("its first process does not answer after %s: main has to call reexec.Main before anything else", c.hello))
	defer cancelHello()
	if err := c.expect(hello, kindHello); err != nil {
		return err
	}
	if err := send(c.conn, plan, files...); err != nil {
		return c.died(fmt.Errorf("send the plan: %w", err))
	}
	if err := c.expect(ctx, kindReady); err != nil {
		return err
	}
	c.common = commands
	go c.listen()
	return nil
}

// expect waits for an event of one kind.
func (c *Client) expect(ctx context.Context, kind string) error {
	stop := context.AfterFunc(ctx, func() { _ = c.process.Kill() })
	defer stop()
	e, err := c.hear(make([]byte, maxEvent))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return c.died(err)
	case e.Kind == kind:
		return nil
	case e.Kind == kindFailed:
		return errors.New(e.Error)
	}
	return fmt.Errorf("its first process says %q instead of %q", e.Kind, kind)
}

// hear takes the next event.
func (c *Client) hear(buf []byte) (event, error) {
	n, err := c.conn.Read(buf)
	if err != nil {
		return event{}, err
	}
	return decodeEvent(buf[:n])
}

// died adds to an error what the supervisor wrote last.
func (c *Client) died(err error) error {
	_ = c.process.Kill()
	<-c.gone
	if line := c.lastWords(); line != "" {
		return fmt.Errorf("its first process ended (%s): %w", line, err)
	}
	return fmt.Errorf("its first process ended: %w", err)
}

// lastWords is the line with which a supervisor that has crashed begins to say why.
func (c *Client) lastWords() string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.stderr.String()), "\n")
	return line
}

// Kill kills the supervisor and waits for its end.
func (c *Client) Kill(ctx context.Context) error {
	_ = c.process.Kill() // it may have ended
	select {
	case <-c.gone:
		_ = c.conn.Close()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the supervisor with everything it has started, and waits for the Execs to return. When ctx ends first it can
// be called again.
func (c *Client) Close(ctx context.Context) error {
	_, err := c.commands.Close(ctx, func(ctx context.Context) error {
		if c.patient {
			_ = c.conn.CloseWrite() // it kills what it has started, and ends
			select {
			case <-c.gone:
			case <-time.After(answerLimit):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := c.Kill(ctx); err != nil {
			return err
		}
		<-c.heard
		return nil
	})
	return err
}

// Notices says how many processes the limits have killed. oom is the kernel's own count for memory; where it has one,
// that counts.
func (c *Client) Notices(memory int64, pids, oom int) (list []sandboxes.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if oom == 0 {
		oom = c.killed[causeMemory]
	}
	if oom > 0 {
		list = append(list, sandboxes.MemoryNotice(oom, memory))
	}
	if n := c.killed[causePIDs]; n > 0 {
		list = append(list, sandboxes.PIDsNotice(n, pids))
	}
	return list
}
