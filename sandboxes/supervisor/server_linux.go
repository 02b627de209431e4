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

// conversationFD is the supervisor's end of the sockets.
const conversationFD = 3

// Run is the work of a process that serves a supervisor's role: it says hello, and tells the host's side why work has
// failed. It returns the exit status.
func Run(work func(conn *net.UnixConn) error) (status int) {
	conn, err := connect(os.NewFile(conversationFD, "conversation"))
	if err != nil {
		return 1 // nobody listens: ralph did not start this
	}
	if err = say(conn, event{Kind: kindHello}); err == nil {
		err = work(conn)
	}
	if err != nil {
		_ = say(conn, event{Kind: kindFailed, Error: err.Error()})
		return 1
	}
	return 0
}

// Config configures a server.
type Config struct {
	Memory int64 // bytes for all processes together, held by watching them; 0: not watched
	PIDs   int   // processes, held by watching them; 0: not watched
	// Limit bounds the number of the user's processes (RLIMIT_NPROC) for each command, once it has started; 0: not.
	Limit int
	// Score is this process's memory score; nil: that of a command is set after it has started.
	Score *Score
	// Start changes how a command is started; nil starts it directly.
	Start func(*Command) error
}

// Command is a command that is about to start. A Start function may change all of it.
type Command struct {
	Path, Dir string
	Argv, Env []string
	Files     []*os.File // its standard files; Start may append, and the server closes them all
	// Refusal, when set, is read once the command has ended: what it holds is why the command could not be started.
	Refusal *os.File
}

// server starts commands, reaps everything, and says how its commands ended.
type server struct {
	Config
	conn *net.UnixConn
	init bool // this is the first process of a PID namespace

	// mu also keeps the reaper away from a start: a process that cannot be started is reaped by the starter.
	mu       sync.Mutex
	commands map[uint64]*running // guarded by mu; until nothing of the command is left
	children chan struct{}       // has a value when there may be children to reap
	reaped   chan struct{}       // guarded by mu; closed and replaced when something was reaped
}

// running is a command that runs, or has ended and left processes behind.
type running struct {
	id      uint64
	root    int    // its first process: leader of a session and a group
	mark    string // in the environment of its processes
	refusal *os.File
	ended   chan struct{}
	exit    event // the reaper's until ended is closed; then fixed
	kill    chan struct{}
	once    sync.Once // closes kill
}

// Serve runs commands until the host's side closes the conversation or is no more. All processes of the sandbox have then
// been killed, or will be by the kernel when this process, the first of its namespace, ends.
func Serve(conn *net.UnixConn, c Config) error {
	s := &server{
		Config: c, conn: conn, init: os.Getpid() == 1,
		commands: make(map[uint64]*running), children: make(chan struct{}, 1), reaped: make(chan struct{}),
	}
	go s.reap()
	if c.Memory > 0 || c.PIDs > 0 {
		go s.watch()
	}
	err := say(conn, event{Kind: kindReady})
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

// serve does what a request asks for.
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
	case r.Op == opSignal && !c.hasEnded(): // else its number may be another's
		_ = unix.Kill(-c.root, unix.SIGTERM)
	}
}

func (c *running) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// exec starts a command, or says why it cannot.
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
	_ = say(s.conn, refusal(r.ID, err)) // when ralph is gone, so is this process
}

// refusal is the event of a command that could not be started.
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

// Refuse writes to a command's Refusal why its program could not be started.
func Refuse(to io.Writer, cause error) error {
	text, err := json.Marshal(refusal(0, cause))
	if err == nil {
		_, err = to.Write(text)
	}
	return err
}

func (s *server) start(id uint64, cmd *Command) (c *running, err error) {
	if len(cmd.Files) != 3 || len(cmd.Argv) == 0 {
		return nil, errors.New("the request is not complete")
	}
	c = &running{id: id, mark: fmt.Sprintf("%s%d", execMark, id), ended: make(chan struct{}), kill: make(chan struct{})}
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
	runtime.KeepAlive(cmd.Files) // their numbers were in use until here
	if err != nil {
		return nil, proc.Explain(err, cmd.Path, cmd.Dir)
	}
	c.root = pid
	if s.Limit > 0 {
		// Less than bounds this process, which so can always work.
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

// follow waits until a command ends or has to be killed. Then it kills everything the command has started, and only then
// says how it ended.
func (s *server) follow(c *running) {
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
	_ = say(s.conn, c.exit)
}

// reap takes the status of every process that ends, as a first process must. It never returns.
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
		case unix.ECHILD: // all are children of commands
			<-s.children
		}
	}
}

// reapOne reaps one process. It returns false when none is left to reap. mu is held.
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
		if c.root != pid || c.hasEnded() { // an earlier owner of the number
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
