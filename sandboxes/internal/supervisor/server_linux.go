package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
)

// conversationFD is the supervisor's end of the socket pair.
const conversationFD = 3

// Run is the main function of a process with a supervisor's role. It sends the hello, calls work, and reports an error of
// work to the host's side. It returns the exit status.
func Run(work func(conn *net.UnixConn) error) (status int) {
	conn, err := connect(os.NewFile(conversationFD, "conversation"))
	if err != nil {
		return 1 // ralph did not start this process, so nobody listens
	}
	if err = sendEvent(conn, event{Kind: kindHello}); err == nil {
		err = work(conn)
	}
	if err != nil {
		_ = sendEvent(conn, event{Kind: kindFailed, Error: err.Error()})
		return 1
	}
	return 0
}

// Config configures a server.
type Config struct {
	Memory int64 // limit in bytes of all processes together, enforced by polling; 0: none
	PIDs   int   // limit of processes, enforced by polling; 0: none
	// Limit is the limit of the user's processes (RLIMIT_NPROC) for each command, set after its start; 0: none.
	Limit int
	// Score is this process's OOM score; nil: a command's score is set after its start.
	Score *Score
	// Start may change how a command is started; nil starts it directly.
	Start func(*Command) error
}

// Command is a command before its start. A Start function may change all fields.
type Command struct {
	Path, Dir string
	Argv, Env []string
	Files     []*os.File // its standard files; Start may append to them; the server closes all
	// Refusal, if set, is read after the command has ended. Its content is the reason why the command could not be started.
	Refusal *os.File
}

// server starts commands, reaps all processes, and reports how its commands ended.
type server struct {
	Config
	conn *net.UnixConn
	init bool // this is the first process of a PID namespace

	// mu also blocks the reaper during a start: the starter itself reaps a process that could not be started.
	mu       sync.Mutex
	commands map[uint64]*runningCommand // guarded by mu; until all processes of the command have ended
	children chan struct{}              // signals that there may be children to reap
	reaped   chan struct{}              // guarded by mu; closed and replaced after reaping
}

// runningCommand is a command that runs, or has ended and left processes behind.
type runningCommand struct {
	id      uint64
	root    int    // its first process: session and process group leader
	mark    string // in the environment of its processes
	refusal *os.File
	ended   chan struct{}
	exit    event // owned by the reaper until ended is closed; then constant
	kill    chan struct{}
	once    sync.Once // closes kill
}

// Serve runs commands until the host's side closes the connection or dies. By then it has killed all processes of the
// sandbox, or the kernel will when this process, the first of its PID namespace, ends.
func Serve(conn *net.UnixConn, c Config) error {
	s := &server{
		Config: c, conn: conn, init: os.Getpid() == 1,
		commands: make(map[uint64]*runningCommand), children: make(chan struct{}, 1), reaped: make(chan struct{}),
	}
	go s.reap()
	if c.Memory > 0 || c.PIDs > 0 {
		go s.watch()
	}
	err := sendEvent(conn, event{Kind: kindReady})
	for err == nil {
		var r request
		var files []*os.File
		if files, err = Receive(conn, &r); err == nil {
			s.serve(r, files)
		}
	}
	if !s.init {
		s.endAll()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// serve handles a request.
func (s *server) serve(r request, files []*os.File) {
	if r.Op == opExec {
		s.exec(r, files)
		return
	}
	closeAll(files)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.commands[r.ID]
	switch {
	case c == nil:
	case r.Op == opKill:
		c.once.Do(func() { close(c.kill) })
	case r.Op == opSignal && !c.hasEnded(): // after its end, the PID may be reused
		_ = unix.Kill(-c.root, unix.SIGTERM)
	}
}

func (c *runningCommand) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// exec starts a command, or reports why it cannot.
func (s *server) exec(r request, files []*os.File) {
	cmd := &Command{Dir: r.Dir, Argv: r.Argv, Env: r.Env, Files: files}
	c, err := s.start(r.ID, cmd)
	closeAll(cmd.Files)
	if err == nil {
		go s.follow(c)
		return
	}
	if cmd.Refusal != nil {
		_ = cmd.Refusal.Close()
	}
	_ = sendEvent(s.conn, refusal(r.ID, err)) // an error means that ralph is gone; then this process ends, too
}

// refusal returns the event for a command that could not be started.
func refusal(id uint64, err error) event {
	e := event{ID: id, Kind: kindRefused, Error: err.Error()}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		e.Cause = causeNotFound
	case errors.Is(err, fs.ErrPermission):
		e.Cause = causePermission
	}
	return e
}

// Refuse writes to a command's Refusal the reason why its program could not be started.
func Refuse(to io.Writer, cause error) error {
	text, err := json.Marshal(refusal(0, cause))
	if err == nil {
		_, err = to.Write(text)
	}
	return err
}

func (s *server) start(id uint64, cmd *Command) (c *runningCommand, err error) {
	if len(cmd.Files) != 3 || len(cmd.Argv) == 0 {
		return nil, errors.New("the request is not complete")
	}
	c = &runningCommand{id: id, mark: fmt.Sprintf("%s%d", execMark, id), ended: make(chan struct{}), kill: make(chan struct{})}
	cmd.Env = append(cmd.Env, c.mark)
	if s.Start != nil {
		err = s.Start(cmd)
	} else {
		cmd.Path, err = proc.Lookup(cmd.Argv[0], cmd.Dir, cmd.Env)
	}
	if err != nil {
		return nil, err
	}
	c.refusal = cmd.Refusal
	attr := syscall.ProcAttr{Dir: cmd.Dir, Env: cmd.Env, Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, f := range cmd.Files {
		attr.Files = append(attr.Files, f.Fd())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pid := 0
	lent := s.Score.Lend(func() { pid, _, err = syscall.StartProcess(cmd.Path, cmd.Argv, &attr) })
	runtime.KeepAlive(cmd.Files) // their descriptors were in use until here
	if err != nil {
		return nil, proc.Explain(err, cmd.Path, cmd.Dir)
	}
	c.root = pid
	if s.Limit > 0 {
		// Lower than the limit of this process, which can therefore always fork.
		limit := unix.Rlimit{Cur: uint64(s.Limit), Max: uint64(s.Limit)}
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil) // it may have ended
	}
	if !lent {
		_ = os.WriteFile(procFile(pid, "oom_score_adj"), []byte(commandScore), 0) // it may have ended
	}
	s.commands[id] = c
	select {
	case s.children <- struct{}{}:
	default:
	}
	return c, nil
}

// follow waits until a command ends or must be killed, then kills everything that it has started, and then reports how the
// command ended.
func (s *server) follow(c *runningCommand) {
	select {
	case <-c.ended:
	case <-c.kill:
	}
	s.endTree(c)
	<-c.ended
	s.mu.Lock()
	delete(s.commands, c.id)
	s.mu.Unlock()
	if c.refusal != nil {
		text, _ := io.ReadAll(io.LimitReader(c.refusal, maxEvent))
		_ = c.refusal.Close()
		if e, err := decodeEvent(text); err == nil && e.Kind == kindRefused {
			e.ID = c.id
			c.exit = e
		}
	}
	_ = sendEvent(s.conn, c.exit)
}

// reap reaps every process that ends, as an init process must. It never returns.
func (s *server) reap() {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		switch err {
		case nil:
			s.mu.Lock()
			for s.reapOne() {
			}
			close(s.reaped)
			s.reaped = make(chan struct{})
			s.mu.Unlock()
		case unix.ECHILD: // no children; every child begins as a command
			<-s.children
		}
	}
}

// reapOne reaps one process. It returns false if there is none to reap. mu must be held.
func (s *server) reapOne() bool {
	var status unix.WaitStatus
	pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
	if err == unix.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	for _, c := range s.commands {
		if c.root != pid || c.hasEnded() { // another process had that PID, or this command has ended already
			continue
		}
		c.exit = event{ID: c.id, Kind: kindExited, Code: status.ExitStatus()}
		if status.Signaled() {
			c.exit.Signal = int(status.Signal())
		}
		close(c.ended)
	}
	return true
}
